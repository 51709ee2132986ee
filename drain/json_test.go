// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
)

func TestDecision_JSON_NoZeroTimesAndNoInternals(t *testing.T) {
	in := observed(newPod("web"))
	in.Budgets = drain.All(exhausted("web"))
	policy := drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}}
	data, err := json.Marshal(drain.Decide(in, policy, now))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"node": "node-1", "feasible": true, "cordonedAt": "2026-03-01T12:00:00Z", "started": "2026-03-01T12:00:00Z",
		"notEvaluated": ["daemonsets"],
		"pods": [{
			"namespace": "shop", "name": "web", "uid": "uid-web", "action": "wait", "reason": "DisruptionBudget", "message": "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired",
			"budgets": [{"namespace": "shop", "name": "web", "allowed": 0, "healthy": 2, "desired": 2, "expected": 3}],
			"since": "2026-03-01T12:00:00Z", "until": "2026-03-01T12:01:00Z", "next": "IgnoreBudgets", "nextAt": "2026-03-01T13:00:00Z"
		}],
		"ladder": ["after 1h0m0s IgnoreBudgets"], "next": "IgnoreBudgets", "nextAt": "2026-03-01T13:00:00Z", "nextCheck": "2026-03-01T12:01:00Z"
	}`, string(data))

	data, err = json.Marshal(drain.Decision{})
	require.NoError(t, err)
	require.JSONEq(t, `{"node": "", "pods": [], "feasible": true}`, string(data))
}
