// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// TestPass_RefusedForTwoHours_SinceCountsFromTheFirstRefusal asserts that a repeated request does not
// restart the wait.
func TestPass_RefusedForTwoHours_SinceCountsFromTheFirstRefusal(t *testing.T) {
	for name, f := range map[string]draintest.Fault{
		"forbidden":                       {Kind: draintest.Forbidden, Resource: "pods", Subresource: "eviction"},
		"internal error":                  {Kind: draintest.InternalError, Resource: "pods", Subresource: "eviction"},
		"budget that cannot be evaluated": {Kind: draintest.Forbidden, Resource: "poddisruptionbudgets"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Inject(f)
				var s drain.State
				var d drain.Decision
				for w.took() < 2*time.Hour {
					in, err := runner.Observe(t.Context(), runner.NewClient(w.client), "node-1", drain.Policy{}, s)
					require.NoError(t, err)
					s, d, err = w.pass(t, s, in, drain.Policy{})
					require.NoError(t, err)
					require.Equal(t, drain.Draining, d.Outcome, d)
					time.Sleep(max(time.Second, time.Until(d.NextCheck)))
				}
				require.Len(t, d.Rows, 1)
				require.Less(t, d.Rows[0].Since.Sub(w.start), time.Minute, d.Rows[0].String())
			}, newNode("node-1"), newPod("a", ofApp("web")), newBudget("web", "web", 1))
		})
	}
}
