// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/safety"
)

// Six of ten machines of a zone fail within a minute. None of them is replaced for an hour.
func ExampleDecideGuard() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var members []safety.GuardMember
	for i := range 10 {
		m := safety.GuardMember{ID: fmt.Sprint(i), Zone: "a", Available: true}
		if i < 6 {
			m.Available, m.FailingSince = false, now.Add(-10*time.Minute)
		}
		members = append(members, m)
	}
	d := safety.DecideGuard(safety.GuardObservation{Machine: members[0], Members: members, Complete: true}, safety.DefaultGuardPolicy(), now)
	fmt.Println(d.Reason)
	fmt.Println("the machine may be failed:", len(d.Holds) == 0)
	fmt.Println("decide again at", d.NextCheck.Format("15:04"))
	// Output:
	// ReplacementsHeld
	// the machine may be failed: false
	// decide again at 12:50
}
