// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/safety"
)

// An API server does not answer for 30 seconds. Health timeouts are frozen until it answers.
func ExampleStepFreeze() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var state safety.FreezeState
	for _, err := range []error{nil, errors.New("connection refused"), errors.New("connection refused"), nil} {
		var d safety.FreezeDecision
		state, d = safety.StepFreeze(state, []safety.Probe{{Server: "target", Err: err}}, safety.FreezePolicy{}, now)
		fmt.Println(d)
		now = now.Add(30 * time.Second)
	}
	// Output:
	// not frozen since 2026-03-01T12:00:00Z
	// not frozen since 2026-03-01T12:00:00Z
	// frozen since 2026-03-01T12:00:30Z: the target API server has not answered since 2026-03-01T12:00:30Z: connection refused
	// not frozen since 2026-03-01T12:01:30Z
}
