// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

func TestRowsReadAsALine(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		row  drain.Row
		want string
	}{
		{drain.Row{}, " / ()"},
		{drain.Row{Verdict: drain.Evict, Namespace: "shop", Name: "web-1", Reason: drain.ReasonEvict, Since: now, Next: drain.IgnoreBudgets, NextAt: at}, "evict shop/web-1 (Evictable)"},
		{drain.Row{Verdict: drain.Evict, Namespace: "shop", Name: "dns", Reason: drain.ReasonEvict, Wave: 1, Grace: new(int64(5))}, "evict shop/dns (Evictable): wave 1; grace 5s"},
		{
			drain.Row{
				Verdict: drain.Wait, Namespace: "shop", Name: "web-2", Reason: drain.ReasonBudget, Since: now, Next: drain.IgnoreBudgets, NextAt: at,
				Message: drain.Budget{Namespace: "shop", Name: "web", Healthy: 3, Expected: 3, Desired: 3}.String(),
			},
			"wait shop/web-2 (DisruptionBudget): budget shop/web allows 0 disruptions: 3 of 3 healthy, 3 desired; since 2026-03-01T12:00:00Z; deleted at 2026-03-01T14:00:00Z",
		},
		{
			drain.Row{Verdict: drain.Block, Namespace: "shop", Name: "debug", Reason: drain.ReasonUnmanaged, Since: now, Next: drain.GiveUp, NextAt: at},
			"block shop/debug (Unmanaged): since 2026-03-01T12:00:00Z; given up at 2026-03-01T14:00:00Z",
		},
		{drain.Row{Verdict: drain.Ignore, Namespace: "shop", Name: "agent", Reason: drain.ReasonDaemonSet, Since: now, Wave: 1}, "ignore shop/agent (DaemonSetPod)"},
		{drain.Row{Verdict: drain.Wait, Namespace: "shop", Name: "web", Reason: drain.ReasonRefused, Message: "denied:\n  by policy\n"}, "wait shop/web (Refused): denied: by policy"},
	} {
		require.Equal(t, tt.want, tt.row.String())
	}
	require.Equal(t, "budget shop/web allows 1 disruption: 4 of 5 healthy, 3 desired", drain.Budget{Namespace: "shop", Name: "web", Allowed: 1, Healthy: 4, Expected: 5, Desired: 3}.String())
	require.Equal(t, "wait volumeattachment/csi-1 (Detaching): volume pv-1; since 2026-03-01T12:00:00Z", drain.VolumeRow{Attachment: "csi-1", Volume: "pv-1", Verdict: drain.Wait, Reason: drain.ReasonDetaching, Since: now}.String())
	require.Equal(t, "ignore volume/pv-1 (Stays)", drain.VolumeRow{Volume: "pv-1", Verdict: drain.Ignore, Reason: drain.ReasonStays, Since: now}.String())
}

// podNamed returns a row of that many pods.
func rowsOf(n int, row drain.Row) []drain.Row {
	rows := make([]drain.Row, n)
	for i := range rows {
		rows[i] = row
		rows[i].Namespace, rows[i].Name = "shop", fmt.Sprintf("%s-%d", row.Name, i+1)
	}
	return rows
}

func TestD4Summaries(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	web := []drain.Budget{{Namespace: "shop", Name: "web", Healthy: 2, Expected: 3, Desired: 2}}
	held := drain.Row{Name: "web", Verdict: drain.Wait, Reason: drain.ReasonBudget, Budgets: web, Since: now}
	later := held
	later.Since = now.Add(time.Hour)
	for _, tt := range []struct {
		name string
		plan drain.Decision
		want string
	}{
		{"the zero plan waits for nothing", drain.Decision{}, "no pods to wait for"},
		{"a drain that cannot be planned", drain.Decision{Reason: drain.ReasonNotObserved}, "NotObserved"},
		{"a Node that is gone", drain.Decision{Reason: drain.ReasonNodeGone, Outcome: drain.NodeGone}, "NodeGone"},
		{"a drain that is over", drain.Decision{Outcome: drain.Drained, GoneSoFar: 40}, "Drained: 40 pods gone"},
		{"a drain of one pod that is over", drain.Decision{Outcome: drain.Drained, GoneSoFar: 1}, "Drained: 1 pod gone"},
		{
			"a drain that went on without some", drain.Decision{Outcome: drain.Proceeded, GoneSoFar: 38, Rows: rowsOf(2, drain.Row{Name: "web", Verdict: drain.Ignore, Reason: drain.ReasonAbandoned})},
			"Proceeded with 2 of 40 pods left; 2 Abandoned: shop/web-1, shop/web-2",
		},
		{
			"a drain that was given up", drain.Decision{Outcome: drain.GaveUp, GoneSoFar: 1, Rows: rowsOf(1, held), NextAt: at, Next: drain.GiveUp},
			"GaveUp with 1 of 2 pods left; 1 waits for budget shop/web (allows 0, 2 of 3 healthy, 2 desired) since 2026-03-01T12:00:00Z: shop/web-1",
		},
		{
			"pods with the same reason are put together, and what needs help comes first",
			drain.Decision{
				GoneSoFar: 12, Next: drain.IgnoreBudgets, NextAt: at, NotEvaluated: []drain.Source{drain.SourceDaemonSets},
				Rows: slices.Concat(
					rowsOf(21, drain.Row{Name: "api", Verdict: drain.Evict, Reason: drain.ReasonEvict, Since: now}),
					rowsOf(1, named(held, "cart")), rowsOf(2, later),
					rowsOf(1, drain.Row{Name: "debug", Verdict: drain.Block, Reason: drain.ReasonUnmanaged, Since: now}),
					rowsOf(3, drain.Row{Name: "old", Verdict: drain.Wait, Reason: drain.ReasonTerminating, Since: now}),
					rowsOf(7, drain.Row{Name: "agent", Verdict: drain.Ignore, Reason: drain.ReasonDaemonSet, Since: now}),
				),
			},
			"12 of 40 pods gone; 1 unmanaged since 2026-03-01T12:00:00Z: shop/debug-1; " +
				"3 wait for budget shop/web (allows 0, 2 of 3 healthy, 2 desired) since 2026-03-01T12:00:00Z: shop/cart-1, shop/web-1, shop/web-2; " +
				"3 terminating since 2026-03-01T12:00:00Z: shop/old-1, shop/old-2, shop/old-3; " +
				"21 asked to go (evict): shop/api-1, shop/api-10, shop/api-11 and 18 more; " +
				"next: IgnoreBudgets at 2026-03-01T14:00:00Z; not evaluated: daemonsets",
		},
		{
			"gates, a missing fence and volumes are told",
			drain.Decision{
				Fence: &drain.SetFence{}, GoneSoFar: 2, Gates: []machinist.Hold{{Subject: "hook/backup", Reason: drain.ReasonHook, Message: "of team-a", Since: now}},
				Volumes: []drain.VolumeRow{{Attachment: "csi-1", Volume: "pv-1", Verdict: drain.Wait, Reason: drain.ReasonDetaching, Since: now}, {Volume: "pv-2", Verdict: drain.Ignore}},
			},
			"2 of 2 pods gone; the node is not fenced yet; waits for hook/backup (Hook): of team-a since 2026-03-01T12:00:00Z; 1 volume (Detaching) since 2026-03-01T12:00:00Z: pv-1",
		},
		{
			"a refusal of another kind is repeated", drain.Decision{Rows: rowsOf(1, drain.Row{Name: "web", Verdict: drain.Wait, Reason: drain.ReasonRefused, Message: "webhook denied", Since: now})},
			"0 of 1 pod gone; 1 Refused (webhook denied) since 2026-03-01T12:00:00Z: shop/web-1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.plan.Summary())
		})
	}
}

func TestSummariesFitInACondition(t *testing.T) {
	long := strings.Repeat("n", 253)
	for seed := range uint64(300) {
		d := rand.New(rand.NewPCG(seed, 5))
		plan := drain.Decision{GoneSoFar: d.IntN(1000), Message: strings.Repeat("ü", d.IntN(2000)), NotEvaluated: []drain.Source{drain.SourceBudgets, drain.SourceDaemonSets}}
		plan.Outcome = []drain.Outcome{drain.Draining, drain.GaveUp, drain.Proceeded}[d.IntN(3)]
		if d.IntN(2) == 0 {
			plan.Reason = drain.ReasonNodeGone
		}
		if d.IntN(2) == 0 {
			plan.Next, plan.NextAt = drain.IgnoreBudgets, now
		}
		for i := range d.IntN(60) {
			name := fmt.Sprintf("%s-%d", long[:d.IntN(len(long))], i)
			plan.Rows = append(plan.Rows, drain.Row{
				Verdict: []drain.Verdict{drain.Wait, drain.Block, drain.Evict, drain.Ignore}[d.IntN(4)],
				Reason:  []machinist.Reason{drain.ReasonBudget, drain.ReasonBudgets, drain.ReasonRefused, drain.ReasonUnmanaged, "Other"}[d.IntN(5)],
				Message: strings.Repeat("word ", d.IntN(50)), Namespace: long[:1+d.IntN(60)], Name: name, Since: now,
				Budgets: []drain.Budget{{Namespace: long[:60], Name: long}, {}},
			})
		}
		for range d.IntN(3) {
			plan.Gates = append(plan.Gates, machinist.Hold{Subject: "hook/" + long, Message: long})
			plan.Volumes = append(plan.Volumes, drain.VolumeRow{Volume: long, Verdict: drain.Wait})
		}
		text := plan.Summary()
		require.LessOrEqual(t, len(text), 1024)
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\n")
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == ':' || r == '(' || r == ')' }) {
			if ns, pod, isPod := strings.Cut(name, "/"); isPod && ns != "hook" && strings.HasPrefix(pod, "n") {
				whole := func(r drain.Row) bool { return r.Namespace == ns && r.Name == pod || pod == long }
				require.True(t, slices.ContainsFunc(plan.Rows, whole) || strings.HasSuffix(name, "..."), "names are whole: %s", name)
			}
		}
		slices.Reverse(plan.Rows)
		require.Equal(t, text, plan.Summary(), "the order of the rows does not matter")
	}
}

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
		{"but not only once the instance is off", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.ForceDeletePods, IfOff: true}), 1},
		{"nor does a shorter grace help", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.CapGrace, Grace: time.Second}), 1},
		{"nor giving up", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, ladder(drain.Rung{After: time.Hour, Action: drain.GiveUp}), 1},
		{"a ladder of unreachable Nodes does not help on others", newPod("a"), []*policyv1.PodDisruptionBudget{never()}, drain.Policy{UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods}}}, 1},
		{"D-6 budgets that overlap", newPod("a"), []*policyv1.PodDisruptionBudget{newBudget("web", 1), newBudget("all", 1)}, drain.Policy{}, 1},
		{"an unmanaged pod", newPod("a", unmanaged), nil, drain.Policy{}, 1},
		{"an unmanaged pod and a ladder that ignores budgets alone", newPod("a", unmanaged), nil, ladder(drain.Rung{After: time.Hour, Action: drain.IgnoreBudgets}), 1},
		{"an unmanaged pod and a ladder that goes further", newPod("a", unmanaged), nil, ladder(drain.Rung{After: time.Hour, Action: drain.IgnoreProtection}), 0},
		{"an unmanaged pod and a ladder that goes on without", newPod("a", unmanaged), nil, ladder(drain.Rung{After: time.Hour, Action: drain.Proceed}), 0},
		{"a pod without identity, which no rung can mean", newPod("a", func(p *corev1.Pod) { p.UID = "" }), nil, ladder(drain.Rung{After: time.Hour, Action: drain.IgnoreProtection}), 1},
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
	t.Run("a fence that somebody took away is an obstacle", func(t *testing.T) {
		require.False(t, drain.Decision{Gates: []machinist.Hold{{Reason: drain.ReasonUncordoned}}}.Feasible())
		require.True(t, drain.Decision{Gates: []machinist.Hold{{Reason: drain.ReasonHook}}}.Feasible())
	})
	t.Run("an obstacle that ends by itself is none", func(t *testing.T) {
		plan := drain.Decision{Rows: []drain.Row{{Verdict: drain.Block, Reason: drain.ReasonDoNotDisrupt, Until: now}}}
		require.True(t, plan.Feasible())
	})
	t.Run("what is left of a drain that was given up are obstacles", func(t *testing.T) {
		plan := drain.Decision{Outcome: drain.GaveUp, Rows: rowsOf(2, drain.Row{Verdict: drain.Wait, Reason: drain.ReasonOverdue})}
		require.False(t, plan.Feasible())
		require.Len(t, plan.Obstacles(), 2)
	})
	t.Run("a permission that is missing is an obstacle, for deletions as well", func(t *testing.T) {
		plan := drain.Decision{Rows: rowsOf(1, drain.Row{Verdict: drain.Wait, Reason: drain.ReasonForbidden}), Ladder: drain.Ladder{{Action: drain.IgnoreProtection}}}
		require.False(t, plan.Feasible())
		plan.Ladder = append(plan.Ladder, drain.Rung{Action: drain.Proceed})
		require.True(t, plan.Feasible())
	})
}

// named returns a row of the same kind about another pod.
func named(row drain.Row, name string) drain.Row {
	row.Name = name
	return row
}

func TestAPlanThatIsNotFeasibleWithoutAPod(t *testing.T) {
	t.Run("a drain that was given up", func(t *testing.T) {
		require.False(t, drain.Decision{Outcome: drain.GaveUp}.Feasible())
	})
	t.Run("a ladder that is not valid removes no obstacle", func(t *testing.T) {
		policy := drain.Policy{Ladder: drain.Ladder{{Action: drain.Proceed}, {Action: drain.GiveUp}}}
		plan := drain.Decide(observed(newPod("a", unmanaged)), policy, now)
		require.Empty(t, plan.Ladder)
		require.Len(t, plan.Obstacles(), 1)
	})
}

func TestWhatASummaryHasNoRoomFor(t *testing.T) {
	t.Run("is counted by pods", func(t *testing.T) {
		var plan drain.Decision
		for i := range 20 {
			plan.Rows = append(plan.Rows, rowsOf(3, drain.Row{Name: "n", Verdict: drain.Wait, Reason: machinist.Reason(strings.Repeat(string(rune('A'+i)), 150))})...)
		}
		text := plan.Summary()
		told := strings.Count(text, "; 3 ")
		require.Positive(t, told)
		require.True(t, strings.HasSuffix(text, fmt.Sprintf("; %d more", 60-3*told)), text)
	})
	t.Run("names take up a part of it at most", func(t *testing.T) {
		plan := drain.Decision{Rows: rowsOf(3, drain.Row{Name: strings.Repeat("n", 200), Verdict: drain.Block, Reason: drain.ReasonUnmanaged})}
		require.True(t, strings.HasSuffix(plan.Summary(), "-1 and 2 more"), plan.Summary())
	})
}
