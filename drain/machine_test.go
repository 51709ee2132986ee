// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
)

// The modes of the reference system: normal, forced by time or label, and on a Node that
// does not answer.
func TestForMachine(t *testing.T) {
	const s, m = time.Second, time.Minute
	type step struct {
		at   time.Duration
		want drain.Verdict
	}
	evicted := []step{{0, drain.Evict}, {24 * time.Hour, drain.Evict}}
	for _, tt := range []struct {
		name   string
		p      drain.Policy
		silent bool
		pod    *corev1.Pod
		steps  []step
	}{
		{"B6 without timeout a drain asks for evictions for ever", drain.ForMachine(time.Time{}), false, newPod("a"), evicted},
		{"pods that nobody brings back are evicted", drain.ForMachine(time.Time{}), false, newPod("a", unmanaged, emptyDir), evicted},
		{"B6 after the timeout force begins, and lasts a minute", forcedSince(-2 * m), false, newPod("a"), []step{{0, drain.Evict}, {2*m - 1, drain.Evict}, {2 * m, drain.Delete}, {3*m - 1, drain.Delete}, {3 * m, "Proceeded"}}},
		{"B6 force now: a label that forces at once still gives it a minute", forcedSince(time.Hour), false, newPod("a"), []step{{0, drain.Delete}, {m - 1, drain.Delete}, {m, "Proceeded"}}},
		{"B4 unreachable kubelet: a Node that has not answered for five minutes loses its pods, and is waited for a minute", drain.ForMachine(time.Time{}), true, newPod("a"), []step{{0, drain.ForceDelete}, {m - 1, drain.ForceDelete}, {m, "Proceeded"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.p.Ladder.Validate())
			require.NoError(t, tt.p.UnreachableLadder.Validate())
			in := observed(tt.pod)
			in.Reachability = drain.NodeReachability{Unreachable: tt.silent, Since: now.Add(-5 * m)}
			var state drain.State
			for _, step := range tt.steps {
				var plan drain.Decision
				state, plan = drain.Step(state, in, tt.p, now.Add(step.at))
				if plan.Over() {
					require.Equal(t, step.want, drain.Verdict(plan.Outcome), step.at)
					continue
				}
				row := plan.Rows[0]
				require.Equal(t, step.want, row.Verdict, step.at)
				switch row.Verdict {
				case drain.Evict:
					require.Nil(t, row.Grace)
				case drain.Delete:
					require.Equal(t, int64(s/time.Second), *row.Grace)
				}
			}
		})
	}
}

// A Node whose kubelet is silent for a moment keeps its pods: they may well run.
func TestForMachineWaitsForANodeThatBlinks(t *testing.T) {
	in := observed(newPod("a"))
	in.Reachability = drain.NodeReachability{Unreachable: true, Since: now.Add(-5*time.Minute + 1)}
	plan := drain.Decide(in, drain.ForMachine(time.Time{}), now)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
	require.Equal(t, now.Add(1), plan.NextAt)
}

// DD-19: the deadline is counted from what the caller names, not from when a round begins.
func TestDD19DeadlineIsAbsolute(t *testing.T) {
	p := forcedSince(-time.Hour)
	for _, entered := range []time.Duration{0, 30 * time.Minute, 59 * time.Minute} {
		var state drain.State
		in := observed(newPod("a"))
		state, plan := drain.Step(state, in, p, now.Add(entered))
		require.Equal(t, now.Add(time.Hour), plan.NextAt)
		_, plan = drain.Step(state, in, drain.ForMachine(now), now.Add(entered))
		require.Equal(t, drain.Delete, plan.Rows[0].Verdict, "a label counts in the next round")
	}
}

// DD-74: how a drain of a Node with a fault ends is for the policy to say; a deadline that
// is already over does not cut the grace of pods whose kubelet is fine.
func TestDD74RepairNeedNotCutGrace(t *testing.T) {
	in := observed(newPod("a"))
	row := drain.Decide(in, drain.ForMachine(time.Time{}), now).Rows[0]
	require.Equal(t, drain.Evict, row.Verdict)
	p := anchored(drain.Ladder{{Action: drain.IgnoreBudgets}})
	row = drain.Decide(in, p, now.Add(time.Hour)).Rows[0]
	require.Equal(t, drain.Delete, row.Verdict)
	require.Nil(t, row.Grace, "it keeps its own")
}

// DD-65b: a drain can have an end, and somebody else's cordon does not stop it.
func TestDD65bADrainHasAnEnd(t *testing.T) {
	c := climber{t: t, p: anchored(drain.Ladder{{After: time.Minute, Action: drain.Proceed}})}
	require.Equal(t, drain.Evict, c.verdict(0), "the Node was cordoned by somebody")
	require.Equal(t, drain.Verdict(drain.Proceeded), c.verdict(time.Minute))
}

// D-8: every kind of Node with every kind of pod under every ladder ends, or names what it
// waits for; and nobody is asked where there is nobody.
func TestD8ReachabilityMatrix(t *testing.T) {
	const m = time.Minute
	pods := map[string]*corev1.Pod{
		"running": newPod("a"), "unmanaged": newPod("a", unmanaged), "local": newPod("a", emptyDir), "daemon": newPod("a", ownedBy("DaemonSet")),
		"mirror": newPod("a", mirror), "finished": newPod("a", inPhase(corev1.PodSucceeded)), "leaving": newPod("a", leaving(20*time.Second, 30)),
		"overdue": newPod("a", leaving(-m, 30)), "held by a finalizer": newPod("a", withFinalizer, leaving(-m, 0)),
	}
	ladders := map[string]drain.Ladder{
		"empty": nil, "force after": {{After: m, Action: drain.IgnoreBudgets, Grace: time.Second}}, "proceed": {{After: m, Action: drain.Proceed}},
		"force-delete": {{After: m, Action: drain.ForceDeletePods}}, "give up": {{After: m, Action: drain.GiveUp}},
	}
	type cell struct {
		silent      bool
		pod, ladder string
	}
	// what each cell comes to an hour later, by the three: the last rule that fits counts
	want := func(c cell) string {
		leavingAlone := c.pod == "daemon" || c.pod == "mirror" || c.pod == "finished"
		gone := c.pod == "leaving" || c.pod == "overdue" || c.pod == "held by a finalizer"
		protected := map[string]string{"unmanaged": "block Unmanaged", "local": "block LocalStorage"}[c.pod]
		switch {
		case leavingAlone:
			return "Drained"
		case c.ladder == "proceed":
			return "Proceeded"
		case c.ladder == "give up":
			return "GaveUp"
		case c.ladder == "force-delete" && gone && c.pod != "held by a finalizer":
			return "force-delete ForceDeletePods"
		case c.ladder == "force after" && (c.pod == "leaving" || c.pod == "overdue"):
			return "delete IgnoreBudgets"
		case gone:
			return "wait Overdue"
		case protected != "":
			return protected
		case c.ladder == "force after":
			return "delete IgnoreBudgets"
		case c.ladder == "force-delete":
			return "force-delete ForceDeletePods"
		default:
			return "evict Evictable"
		}
	}
	for _, silent := range []bool{false, true} {
		for podName, pod := range pods {
			for ladderName, ladder := range ladders {
				c := cell{silent: silent, pod: podName, ladder: ladderName}
				t.Run(fmt.Sprintf("silent %t, %s pod, ladder %s", c.silent, c.pod, c.ladder), func(t *testing.T) {
					in := observed(pod)
					in.Reachability = drain.NodeReachability{Unreachable: silent}
					p := drain.Policy{Ladder: ladder, EscalateFrom: now}
					if silent {
						p = drain.Policy{UnreachableLadder: ladder}
					}
					state, plan := drain.Step(drain.State{}, in, p, now)
					if !plan.Over() {
						state, _ = drain.Step(state, in, p, now.Add(time.Hour))
						state, plan = drain.Step(state, in, p, now.Add(2*time.Hour))
						require.NotEmpty(t, state.Started)
					}
					got := string(plan.Outcome)
					if !plan.Over() {
						require.NotEmpty(t, plan.Holds())
						require.Equal(t, "pod/shop/a", plan.Holds()[0].Subject)
						require.True(t, plan.NextCheck.After(now.Add(2*time.Hour)))
						got = fmt.Sprintf("%s %s", plan.Rows[0].Verdict, plan.Rows[0].Reason)
					}
					require.Equal(t, want(c), got)
				})
			}
		}
	}
}

// B4 unreachable kubelet: one that says it is not ready answers. It unmounts volumes, which
// are waited for as ever.
func TestB4AKubeletThatIsNotReadyAnswers(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true, "": true,
	} {
		node := newNode()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		require.Equal(t, want, drain.ReachabilityOf(node).Unreachable, "%q", status)
	}
}

// B4 unreachable kubelet: without a ladder pods are evicted as usual, so that their budgets
// are asked, and they are waited for.
func TestB4UnreachableWithoutLadder(t *testing.T) {
	in := observed(newPod("a"), newPod("b", leaving(-time.Minute, 30)))
	in.Reachability.Unreachable = true
	plan := drain.Decide(in, drain.Policy{}, now)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
	require.Equal(t, drain.Wait, plan.Rows[1].Verdict)
	require.Equal(t, drain.ReasonOverdue, plan.Rows[1].Reason)
	require.Contains(t, plan.Rows[1].Message, "the kubelet of the Node does not answer")
}

// B4 Node object missing: there is nothing to drain, and nobody to ask.
func TestB4NodeMissing(t *testing.T) {
	for name, in := range map[string]drain.Observation{
		"it was looked for":     {Looked: true, Pods: drain.All(newPod("a"))},
		"and pods are unknown":  {Looked: true},
		"and forced afterwards": {Looked: true, Reachability: drain.ReachabilityOf(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			plan := drain.Decide(in, forcedSince(time.Hour), now)
			require.Equal(t, drain.NodeGone, plan.Outcome)
			require.NotEmpty(t, plan.Reason)
			require.Empty(t, plan.Rows)
		})
	}
}

// A pod that a budget keeps does not keep critical pods: they are asked at once, long
// before force.
func TestForMachine_BudgetBlocksAPod_CriticalPodsAreAskedAtOnce(t *testing.T) {
	in := observed(newPod("blocked"), newPod("critical", withPriority(2000000000), goldenLabeled("other")))
	in.Budgets = drain.All(exhausted("web", goldenCovering("web")))
	plan := drain.Decide(in, drain.ForMachine(now.Add(time.Hour)), now)
	require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
	require.Equal(t, drain.ReasonBudget, plan.Rows[0].Reason)
	require.Equal(t, drain.Evict, plan.Rows[1].Verdict)
}
