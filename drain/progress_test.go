// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// progressOf returns a decision with these parts: rows of pods, of a volume, and the outcome. An empty
// text is the decision of a drain that started now, and "none" the zero Decision.
func progressOf(text string) drain.Decision {
	d := drain.Decision{Node: "node-1", Started: now}
	if text == "none" {
		return drain.Decision{}
	}
	for part := range strings.SplitSeq(text, ", ") {
		switch words := strings.Fields(part); {
		case len(words) == 2:
			d.Outcome = drain.Outcome(words[1])
		case len(words) == 3 && words[0] == "volume":
			d.Volumes = append(d.Volumes, drain.VolumeRow{Volume: "pv", Action: drain.Action(words[1]), Reason: machinist.Reason(words[2])})
		case len(words) == 3:
			d.Rows = append(d.Rows, drain.Row{Namespace: "shop", Name: words[0], UID: "uid", Action: drain.Action(words[1]), Reason: machinist.Reason(words[2])})
		}
	}
	return d
}

func progressText(events []drain.Progress) string {
	texts := make([]string, len(events))
	for i, e := range events {
		texts[i] = e.String()
	}
	return strings.Join(texts, "\n")
}

var errBudgetRefusal = budgetRefusal("The disruption budget web needs 3 healthy pods and has 3 currently", 0)

func TestCompare_TwoDecisions_ReturnsTheProgress(t *testing.T) {
	result := func(err error) []drain.Result {
		return []drain.Result{{Row: drain.Row{Namespace: "shop", Name: "a", UID: "uid", Action: drain.Evict, Reason: drain.ReasonEvict}, Err: err}}
	}
	const refused = "Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently"
	for name, test := range map[string]struct {
		before, after string
		results       []drain.Result
		want          string
		edit          func(before, after *drain.Decision)
	}{
		"the first decision": {
			before: "none", after: "a evict Evictable, b block Unmanaged, c ignore Stays", want: "Started node/node-1\nWaiting pod/shop/b (Unmanaged)",
		},
		"the first decision after a restart": {
			before: "none", after: "a wait Terminating", want: "Waiting pod/shop/a (Terminating)",
			edit: func(_, after *drain.Decision) {
				after.Started, after.CordonedAt = now.Add(-time.Hour), now.Add(-time.Hour)
			},
		},
		"a cordon from the first decision on": {
			before: "none", want: "Started node/node-1\nCordoned node/node-1", edit: func(_, after *drain.Decision) { after.CordonedAt = now },
		},
		"a new cordon": {
			want: "Cordoned node/node-1",
			edit: func(before, after *drain.Decision) {
				before.Cordon, after.CordonedAt = &drain.SetCordon{}, now.Add(-time.Second)
			},
		},
		"an accepted request": {
			before: "a evict Evictable", after: "a wait Terminating", results: result(nil), want: "Requested pod/shop/a to evict (Evictable)",
		},
		"a refused request": {before: "a evict Evictable", after: "a wait DisruptionBudget", results: result(errBudgetRefusal), want: refused},
		"a refusal of a budget that never allows a disruption": {
			before: "a evict Evictable", after: "a wait BudgetNeverAllows", results: result(errBudgetRefusal),
			want: refused + "\nWaiting pod/shop/a (BudgetNeverAllows)",
		},
		"an error without a message": {
			before: "a wait Terminating", after: "a wait Terminating", results: result(errors.New("")),
			want: "Requested pod/shop/a to evict (Refused): \nWaiting pod/shop/a (Terminating)",
		},
		"another reason":                  {before: "a wait Terminating", after: "a wait Overdue", want: "Waiting pod/shop/a (Overdue)"},
		"the same reason":                 {before: "a wait Terminating", after: "a wait Terminating"},
		"a pod that is gone":              {before: "a wait Terminating", want: "Gone pod/shop/a (Gone)"},
		"a pod that has completed":        {before: "a wait WaitCompleted", after: "a ignore Gone", want: "Gone pod/shop/a (Gone)"},
		"a pod that is abandoned":         {before: "a wait Terminating", after: "a ignore Abandoned", want: "Left pod/shop/a (Abandoned)"},
		"a pod that was never waited for": {before: "a ignore Stays"},
		"a successor of the same name": {
			before: "a wait Terminating", after: "a wait Terminating", want: "Gone pod/shop/a (Gone)\nWaiting pod/shop/a (Terminating)",
			edit: func(_, after *drain.Decision) { after.Rows[0].UID = "other" },
		},
		"an incomplete observation": {
			before: "a wait Terminating", after: "none", results: result(nil), want: "Requested pod/shop/a to evict (Evictable)",
			edit: func(_, after *drain.Decision) { after.Reason = drain.ReasonNotObserved },
		},
		"a rung": {
			want: "Escalated node/node-1 (IgnoreBudgets): after 0s IgnoreBudgets\nEscalated node/node-1 (ForceDeletePods): after 0s ForceDeletePods (grace 1s)",
			edit: func(before, after *drain.Decision) {
				before.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}}
				after.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Second}}
			},
		},
		"a volume is waited for": {after: "volume wait Detaching", want: "Waiting volume/pv (Detaching)"},
		"a volume is detached":   {before: "volume wait Detaching", want: "Gone volume/pv (Gone)"},
		"a volume is detached and not yet attached elsewhere": {
			before: "volume wait Detaching", after: "volume wait Reattaching", want: "Waiting volume/pv (Reattaching)",
		},
		"a volume is not attached elsewhere in time": {before: "volume wait Detaching", after: "volume ignore Reattaching", want: "Left volume/pv (Reattaching)"},
		"a gate": {
			want: "Waiting node/node-1 (Uncordoned): why",
			edit: func(before, after *drain.Decision) {
				before.Gates = []machinist.Hold{{Subject: "policy", Reason: "InvalidPolicy"}}
				after.Gates = append(slices.Clone(before.Gates), machinist.Hold{Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "why"})
			},
		},
		"rows in another order": {
			before: "a wait Terminating, b wait B, c wait C", after: "c wait X, b wait B", want: "Gone pod/shop/a (Gone)\nWaiting pod/shop/c (X)",
		},
		"the end": {before: "a wait Terminating", after: "ended Drained", want: "Gone pod/shop/a (Gone)\nEnded node/node-1 (Drained)"},
		"an end with pods left": {
			before: "a wait Terminating", after: "a block Abandoned, b block Unmanaged, ended GaveUp", want: "Left pod/shop/a (Abandoned)\nEnded node/node-1 (GaveUp)",
		},
		"the Node is gone": {
			before: "a wait Terminating", after: "none", want: "Ended node/node-1 (NodeGone)",
			edit: func(_, after *drain.Decision) {
				after.Outcome, after.Reason = drain.NodeGone, machinist.Reason(drain.NodeGone)
			},
		},
		"the same end": {before: "a block Abandoned, ended GaveUp", after: "a block Abandoned, ended GaveUp"},
		"a pod that is new after the end": {
			before: "a block Abandoned, ended Drained", after: "a wait Terminating", want: "Waiting pod/shop/a (Terminating)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := progressOf(test.before), progressOf(test.after)
			if test.edit != nil {
				test.edit(&before, &after)
			}
			events := drain.Compare(before, after, test.results, now)
			require.Equal(t, test.want, progressText(events))
			for _, e := range events {
				require.Equal(t, "node-1", e.Node)
				require.Equal(t, now, e.Time)
				require.Equal(t, before.Started.IsZero() && after.Started.IsZero(), e.Started.IsZero())
				require.Equal(t, strings.HasPrefix(e.Subject, "pod/"), e.Row != nil)
				require.Equal(t, e.Type == drain.ProgressEscalated, e.Rung != nil)
			}
			require.Empty(t, drain.Compare(after, after, nil, now.Add(time.Hour)), "the same decision has no progress")
		})
	}
}

func TestCompare_Results_HaveTheirTimeAndError(t *testing.T) {
	events := drain.Compare(progressOf(""), progressOf(""), []drain.Result{{Err: errBudgetRefusal, At: now.Add(time.Second)}, {}}, now)
	require.Equal(t, now.Add(time.Second), events[0].Time)
	require.ErrorIs(t, events[0].Err, errBudgetRefusal)
	require.NoError(t, events[1].Err)
	require.Empty(t, drain.Progress{}.String())
	require.Equal(t, "Cordoned node/n (NotCordoned): no", drain.Progress{Type: drain.ProgressCordoned, Subject: "node/n", Reason: drain.ReasonNotCordoned, Err: errors.New("no")}.String())
}
