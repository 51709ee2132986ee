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

// TestCompare_TwoDecisions_ReturnsTheProgress has what the story of progress.golden does not tell.
func TestCompare_TwoDecisions_ReturnsTheProgress(t *testing.T) {
	type decisions = func(before, after *drain.Decision)
	result := func(err error) []drain.Result {
		return []drain.Result{{Row: drain.Row{Namespace: "shop", Name: "a", UID: "uid", Action: drain.Evict, Reason: drain.ReasonEvict}, Err: err}}
	}
	earlier := func(_, after *drain.Decision) {
		after.Started, after.CordonedAt = now.Add(-time.Hour), now.Add(-time.Hour)
	}
	cordoned := func(before, after *drain.Decision) {
		before.Cordon, after.CordonedAt = &drain.SetCordon{}, now.Add(-time.Second)
	}
	replaced := func(_, after *drain.Decision) { after.Rows[0].UID = "other" }
	unobserved := func(_, after *drain.Decision) { after.Reason = drain.ReasonNotObserved }
	nodeGone := func(_, after *drain.Decision) {
		after.Outcome, after.Reason = drain.NodeGone, machinist.Reason(drain.NodeGone)
	}
	twice := func(before, after *drain.Decision) {
		before.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}}
		after.Rungs = drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.IgnoreBudgets}}
	}
	gated := func(before, after *drain.Decision) {
		before.Gates = []machinist.Hold{{Subject: "policy", Reason: "InvalidPolicy"}}
		after.Gates = append(slices.Clone(before.Gates), machinist.Hold{Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "why"})
	}
	none := func(_, _ *drain.Decision) {}
	const refused = "Requested pod/shop/a to evict (DisruptionBudget): The disruption budget web needs 3 healthy pods and has 3 currently"
	for name, test := range map[string]struct {
		before, after string
		edit          decisions
		results       []drain.Result
		want          string
	}{
		"the first decision after a restart":     {"none", "a wait Terminating", earlier, nil, "Waiting pod/shop/a (Terminating)"},
		"a new cordon":                           {"", "", cordoned, nil, "Cordoned node/node-1"},
		"a refused request with a new reason":    {"a evict Evictable", "a wait BudgetNeverAllows", none, result(errBudgetRefusal), refused + "\nWaiting pod/shop/a (BudgetNeverAllows)"},
		"a pod that has completed":               {"a wait WaitCompleted", "a ignore Gone", none, nil, "Gone pod/shop/a (Gone)"},
		"a successor of the same name":           {"a wait Terminating", "a wait Terminating", replaced, nil, "Gone pod/shop/a (Gone)\nWaiting pod/shop/a (Terminating)"},
		"an incomplete observation":              {"a wait Terminating", "none", unobserved, result(nil), "Requested pod/shop/a to evict (Evictable)"},
		"a rung like an earlier one":             {"", "", twice, nil, "Escalated node/node-1 (IgnoreBudgets): after 0s IgnoreBudgets"},
		"a volume is not yet attached elsewhere": {"volume wait Detaching", "volume wait Reattaching", none, nil, "Waiting volume/pv (Reattaching)"},
		"a volume is not attached in time":       {"volume wait Detaching", "volume ignore Reattaching", none, nil, "Left volume/pv (Reattaching)"},
		"a gate":                                 {"", "", gated, nil, "Waiting node/node-1 (Uncordoned): why"},
		"rows in another order":                  {"a wait Terminating, b wait B, c wait C", "c wait X, b wait B", none, nil, "Gone pod/shop/a (Gone)\nWaiting pod/shop/c (X)"},
		"the Node is gone":                       {"a wait Terminating", "none", nodeGone, nil, "Ended node/node-1 (NodeGone)"},
		"a pod that is new after the end":        {"a block Abandoned, ended Drained", "a wait Terminating", none, nil, "Waiting pod/shop/a (Terminating)"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := progressOf(test.before), progressOf(test.after)
			test.edit(&before, &after)
			events := drain.Compare(before, after, test.results, now)
			require.Equal(t, test.want, progressText(events))
			for _, e := range events {
				require.Equal(t, []any{"node-1", now}, []any{e.Node, e.Time})
				require.Equal(t, before.Started.IsZero() && after.Started.IsZero(), e.Started.IsZero())
				require.Equal(t, strings.HasPrefix(e.Subject, "pod/"), e.Row != nil)
				require.Equal(t, e.Type == drain.ProgressEscalated, e.Rung != nil)
			}
			require.Empty(t, drain.Compare(after, after, nil, now.Add(time.Hour)), "the same decision has no progress")
		})
	}
	results := []drain.Result{{Err: errBudgetRefusal, At: now.Add(time.Second)}}
	failed := drain.Compare(progressOf(""), progressOf(""), results, now)[0]
	require.Equal(t, []any{now.Add(time.Second), errBudgetRefusal}, []any{failed.Time, failed.Err})
	require.Empty(t, drain.Progress{}.String())
	uncordoned := drain.Progress{Type: drain.ProgressCordoned, Subject: "node/n", Err: errors.New("no")}
	require.Equal(t, "Cordoned node/n: no", uncordoned.String())
}
