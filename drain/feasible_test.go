// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

func TestD12FeasibleBeforeTheFirstWrite(t *testing.T) {
	never := func() *policyv1.PodDisruptionBudget { return newBudget("web", 0) }
	ladder := func(rungs ...drain.Rung) drain.Policy {
		return drain.Policy{Ladder: rungs}
	}
	for _, tt := range []struct {
		name      string
		pod       *corev1.Pod
		budgets   []*policyv1.PodDisruptionBudget
		policy    drain.Policy
		obstacles int
	}{
		{"a pod that may be evicted", newPod("a"), nil, drain.Policy{}, 0},
		{"a budget that allows nothing now", newPod("a"), []*policyv1.PodDisruptionBudget{exhausted("web")}, drain.Policy{}, 0},
		{"DD-72 a budget that never allows anything", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, drain.Policy{}, 1},
		{"unless the ladder ignores budgets", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.IgnoreBudgets}), 0},
		{"or takes pods off the API", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.ForceDeletePods}), 0},
		{"nor giving up", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.GiveUp}), 1},
		{"a ladder of unreachable Nodes does not help on others", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, drain.Policy{UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods}}}, 1},
		{"D-6 budgets that overlap", newPod("a"), []*policyv1.PodDisruptionBudget{newBudget("web", 1), newBudget("all", 1)}, drain.Policy{}, 1},
		{"an unmanaged pod", newPod("a", unmanaged), nil, drain.Policy{}, 1},
		{"an unmanaged pod and a ladder that ignores budgets alone", newPod("a", unmanaged), nil, ladder(drain.Rung{After: time.Hour, Action: drain.IgnoreBudgets}), 1},
		{"an unmanaged pod and a ladder that goes on without", newPod("a", unmanaged), nil, ladder(drain.Rung{After: time.Hour, Action: drain.Proceed}), 0},
		{"a pod that is left alone", newPod("a", mirror), nil, drain.Policy{}, 0},
		{"a pod that is overdue may still go", newPod("a", leaving(-time.Hour, 30)), nil, drain.Policy{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Budgets = drain.All(tt.budgets...)
			plan := drain.Decide(in, tt.policy, now)
			require.Len(t, plan.Obstacles(), tt.obstacles)
			require.Equal(t, tt.obstacles == 0, plan.Feasible())
		})
	}
	t.Run("the others go on", func(t *testing.T) {
		in := observed(newPod("a", unmanaged), newPod("b"), newPod("c", func(p *corev1.Pod) { p.Labels["app"] = "db" }))
		in.Budgets = drain.All(newBudget("web", 0, maxUnavailable(intstr.FromInt32(0))))
		plan := drain.Decide(in, drain.Policy{}, now)
		require.Equal(t, "a block Unmanaged, b wait BudgetNeverAllows, c evict Evictable", budgetVerdicts(plan))
		require.Equal(t, plan.Rows[:2], plan.Obstacles())
	})
	t.Run("what cannot be planned is not feasible", func(t *testing.T) {
		require.False(t, drain.Decide(drain.Observation{}, drain.Policy{}, now).Feasible())
	})
	t.Run("a ladder that contradicts itself is not feasible", func(t *testing.T) {
		require.False(t, drain.Decide(observed(newPod("a")), ladder(drain.Rung{After: -1, Action: drain.GiveUp}), now).Feasible())
	})
	t.Run("a fence that was taken away is an obstacle", func(t *testing.T) {
		require.False(t, drain.Decision{Gates: []machinist.Hold{{Reason: drain.ReasonUncordoned}}}.Feasible())
		require.True(t, drain.Decision{Gates: []machinist.Hold{{Reason: "Other"}}}.Feasible())
	})
	t.Run("an obstacle that ends by itself is none", func(t *testing.T) {
		plan := drain.Decision{Rows: []drain.Row{{Verdict: drain.Block, Reason: drain.ReasonDoNotDisrupt, Until: now}}}
		require.True(t, plan.Feasible())
	})
	t.Run("what is left of a drain that was given up are obstacles", func(t *testing.T) {
		plan := drain.Decision{Outcome: drain.GaveUp, Rows: []drain.Row{{Name: "a", Verdict: drain.Wait, Reason: drain.ReasonOverdue}, {Name: "b", Verdict: drain.Block, Reason: drain.ReasonUnmanaged}}}
		require.False(t, plan.Feasible())
		require.Len(t, plan.Obstacles(), 2)
	})
	t.Run("a permission that is missing is an obstacle, for deletions as well", func(t *testing.T) {
		plan := drain.Decision{Rows: []drain.Row{{Verdict: drain.Wait, Reason: drain.ReasonForbidden}}, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}
		require.False(t, plan.Feasible())
		plan.Ladder = append(plan.Ladder, drain.Rung{Action: drain.Proceed})
		require.True(t, plan.Feasible())
	})
}
