// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// progressPlan returns the decision of a drain that started now.
func progressPlan(edits ...func(*drain.Decision)) drain.Decision {
	p := drain.Decision{Node: "node-1", Started: now}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func progressRow(name string, v drain.Action, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) {
		p.Rows = append(p.Rows, drain.Row{Namespace: "shop", Name: name, UID: "uid", Action: v, Reason: r})
	}
}

func progressVolume(v drain.Action, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) {
		p.Volumes = append(p.Volumes, drain.VolumeRow{Volume: "pv", Action: v, Reason: r})
	}
}

func progressOver(o drain.Outcome, r machinist.Reason) func(*drain.Decision) {
	return func(p *drain.Decision) { p.Outcome, p.Reason = o, r }
}

func progressTexts(events []drain.Progress) []string {
	texts := []string{}
	for _, e := range events {
		texts = append(texts, e.String())
	}
	return texts
}

var errBudgetRefusal = budgetRefusal("The disruption budget web needs 3 healthy pods and has 3 currently", 0)

func TestCompare_TwoDecisions_ReturnsTheProgress(t *testing.T) {
	result := func(err error) []drain.Result {
		return []drain.Result{{Row: drain.Row{Namespace: "shop", Name: "a", UID: "uid", Action: drain.Evict, Reason: drain.ReasonEvict}, Err: err}}
	}
	waits := progressRow("a", drain.Wait, drain.ReasonTerminating)
	for name, test := range map[string]struct {
		before, after drain.Decision
		results       []drain.Result
		want          []string
	}{
		"the first decision": {
			after: progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict), progressRow("b", drain.Block, drain.ReasonUnmanaged), progressRow("c", drain.Ignore, "Stays")),
			want:  []string{"Started node/node-1", "Waiting pod/shop/b (Unmanaged)"},
		},
		"the first decision after a restart": {
			after: progressPlan(waits, func(p *drain.Decision) { p.Started, p.CordonedAt = now.Add(-time.Hour), now.Add(-time.Hour) }),
			want:  []string{"Waiting pod/shop/a (Terminating)"},
		},
		"a cordon from the first decision on": {
			after: progressPlan(func(p *drain.Decision) { p.CordonedAt = now }),
			want:  []string{"Started node/node-1", "Cordoned node/node-1"},
		},
		"a new cordon": {
			before: progressPlan(func(p *drain.Decision) { p.Cordon = &drain.SetCordon{} }),
			after:  progressPlan(func(p *drain.Decision) { p.CordonedAt = now.Add(-time.Second) }),
			want:   []string{"Cordoned node/node-1"},
		},
		"an accepted request": {
			before: progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)), after: progressPlan(waits), results: result(nil),
			want: []string{"Requested pod/shop/a to evict (Evictable)"},
		},
		"a refused request": {
			before:  progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)),
			after:   progressPlan(progressRow("a", drain.Wait, drain.ReasonBudget)),
			results: result(errBudgetRefusal),
			want:    []string{"Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently"},
		},
		"a refusal of a budget that never allows a disruption": {
			before:  progressPlan(progressRow("a", drain.Evict, drain.ReasonEvict)),
			after:   progressPlan(progressRow("a", drain.Wait, drain.ReasonBudgetNever)),
			results: result(errBudgetRefusal),
			want: []string{
				"Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently",
				"Waiting pod/shop/a (BudgetNeverAllows)",
			},
		},
		"an error without a message": {
			before: progressPlan(waits), after: progressPlan(waits), results: result(errors.New("")),
			want: []string{"Requested pod/shop/a to evict (Refused): ", "Waiting pod/shop/a (Terminating)"},
		},
		"another reason": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Wait, drain.ReasonOverdue)),
			want: []string{"Waiting pod/shop/a (Overdue)"},
		},
		"the same reason": {before: progressPlan(waits), after: progressPlan(waits), want: []string{}},
		"a pod that is gone": {
			before: progressPlan(waits), after: progressPlan(), want: []string{"Gone pod/shop/a (Gone)"},
		},
		"a pod that has completed": {
			before: progressPlan(progressRow("a", drain.Wait, drain.ReasonWaitCompleted)), after: progressPlan(progressRow("a", drain.Ignore, "Gone")),
			want: []string{"Gone pod/shop/a (Gone)"},
		},
		"a pod that is abandoned": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Ignore, drain.ReasonAbandoned)),
			want: []string{"Left pod/shop/a (Abandoned)"},
		},
		"a pod that was never waited for": {
			before: progressPlan(progressRow("a", drain.Ignore, "Stays")), after: progressPlan(), want: []string{},
		},
		"a successor of the same name": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Wait, drain.ReasonTerminating), func(p *drain.Decision) { p.Rows[0].UID = "other" }),
			want: []string{"Gone pod/shop/a (Gone)", "Waiting pod/shop/a (Terminating)"},
		},
		"an incomplete observation": {
			before: progressPlan(waits), after: drain.Decision{Node: "node-1", Reason: drain.ReasonNotObserved}, results: result(nil),
			want: []string{"Requested pod/shop/a to evict (Evictable)"},
		},
		"a rung": {
			before: progressPlan(func(p *drain.Decision) { p.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}} }),
			after: progressPlan(func(p *drain.Decision) {
				p.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Second}}
			}),
			want: []string{"Escalated node/node-1 (IgnoreBudgets): after 0s IgnoreBudgets", "Escalated node/node-1 (ForceDeletePods): after 0s ForceDeletePods (grace 1s)"},
		},
		"a volume is waited for": {
			before: progressPlan(), after: progressPlan(progressVolume(drain.Wait, "Detaching")), want: []string{"Waiting volume/pv (Detaching)"},
		},
		"a volume is detached": {
			before: progressPlan(progressVolume(drain.Wait, "Detaching")), after: progressPlan(), want: []string{"Gone volume/pv (Gone)"},
		},
		"a volume is detached and not yet attached elsewhere": {
			before: progressPlan(progressVolume(drain.Wait, "Detaching")), after: progressPlan(progressVolume(drain.Wait, "Reattaching")),
			want: []string{"Waiting volume/pv (Reattaching)"},
		},
		"a volume is not attached elsewhere in time": {
			before: progressPlan(progressVolume(drain.Wait, "Detaching")), after: progressPlan(progressVolume(drain.Ignore, "Reattaching")),
			want: []string{"Left volume/pv (Reattaching)"},
		},
		"a gate": {
			before: progressPlan(func(p *drain.Decision) {
				p.Gates = []machinist.Hold{{Subject: "policy", Reason: "InvalidPolicy"}}
			}),
			after: progressPlan(func(p *drain.Decision) {
				p.Gates = []machinist.Hold{{Subject: "policy", Reason: "InvalidPolicy"}, {Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "why"}}
			}),
			want: []string{"Waiting node/node-1 (Uncordoned): why"},
		},
		"rows in another order": {
			before: progressPlan(waits, progressRow("b", drain.Wait, "B"), progressRow("c", drain.Wait, "C")),
			after:  progressPlan(progressRow("c", drain.Wait, "X"), progressRow("b", drain.Wait, "B")),
			want:   []string{"Gone pod/shop/a (Gone)", "Waiting pod/shop/c (X)"},
		},
		"the end": {
			before: progressPlan(waits), after: progressPlan(progressOver(drain.Drained, "")),
			want: []string{"Gone pod/shop/a (Gone)", "Ended node/node-1 (Drained)"},
		},
		"an end with pods left": {
			before: progressPlan(waits), after: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressRow("b", drain.Block, drain.ReasonUnmanaged), progressOver(drain.GaveUp, "")),
			want: []string{"Left pod/shop/a (Abandoned)", "Ended node/node-1 (GaveUp)"},
		},
		"the Node is gone": {
			before: progressPlan(waits), after: drain.Decision{Outcome: drain.NodeGone, Reason: machinist.Reason(drain.NodeGone)}, want: []string{"Ended node/node-1 (NodeGone)"},
		},
		"the same end": {
			before: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.GaveUp, "")),
			after:  progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.GaveUp, "")), want: []string{},
		},
		"a pod that is new after the end": {
			before: progressPlan(progressRow("a", drain.Block, drain.ReasonAbandoned), progressOver(drain.Drained, "")),
			after:  progressPlan(waits), want: []string{"Waiting pod/shop/a (Terminating)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := drain.Compare(test.before, test.after, test.results, now)
			require.Equal(t, test.want, progressTexts(events))
			for _, e := range events {
				require.Equal(t, "node-1", e.Node)
				require.Equal(t, now, e.Time)
				require.Equal(t, test.before.Started.IsZero() && test.after.Started.IsZero(), e.Started.IsZero())
				require.Equal(t, strings.HasPrefix(e.Subject, "pod/"), e.Row != nil)
				require.Equal(t, e.Type == drain.ProgressEscalated, e.Rung != nil)
			}
			require.Empty(t, drain.Compare(test.after, test.after, nil, now.Add(time.Hour)), "the same decision has no progress")
		})
	}
}

func TestCompare_Results_HaveTheirTimeAndError(t *testing.T) {
	events := drain.Compare(progressPlan(), progressPlan(), []drain.Result{{Err: errBudgetRefusal, At: now.Add(time.Second)}, {}}, now)
	require.Equal(t, now.Add(time.Second), events[0].Time)
	require.ErrorIs(t, events[0].Err, errBudgetRefusal)
	require.NoError(t, events[1].Err)
	require.Empty(t, drain.Progress{}.String())
	require.Equal(t, "Cordoned node/n (NotCordoned): no", drain.Progress{Type: drain.ProgressCordoned, Subject: "node/n", Reason: drain.ReasonNotCordoned, Err: errors.New("no")}.String())
}
