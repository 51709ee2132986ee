// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// answered is the state of a drain that knows one answer about the pod a, and whose
// rungs were all reached a while ago.
func answered(p drain.Policy, in drain.Observation, a drain.Answer) drain.State {
	s, _ := drain.Step(drain.State{}, in, p, now.Add(-time.Nanosecond))
	s.Answers = map[types.UID]drain.Answer{"uid-a": a}
	return s
}

func withGrace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func withoutGrace(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }

// forcedSince is a drain that is forced, as that of a machine.
func forcedSince(d time.Duration) drain.Policy { return drain.ForMachine(now.Add(-d)) }

func TestForce(t *testing.T) {
	const s, m = time.Second, time.Minute
	byBudgets, byForce := machinist.Reason(drain.IgnoreBudgets), machinist.Reason(drain.ForceDeletePods)
	unreachable := drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		reach  drain.NodeReachability
		answer drain.Answer
		want   drain.Verdict
		reason machinist.Reason
		until  time.Duration // zero for none
	}{
		{"at its time a pod gets a second to stop", newPod("a"), forcedSince(0), drain.NodeReachability{}, drain.Answer{}, drain.Delete, byBudgets, 5 * s},
		{"one moment before its time it does nothing", newPod("a"), forcedSince(-1), drain.NodeReachability{}, drain.Answer{}, drain.Evict, drain.ReasonEvict, 5 * s},
		{"it does not wait for the refusal of an eviction", newPod("a"), forcedSince(5 * s), drain.NodeReachability{}, drain.Answer{Asked: drain.Evict, Until: now.Add(s)}, drain.Delete, byBudgets, 5 * s},
		{"it waits for the refusal of a deletion", newPod("a"), forcedSince(5 * s), drain.NodeReachability{}, drain.Answer{Asked: drain.Delete, Reason: drain.ReasonUnavailable, Until: now.Add(s)}, drain.Wait, drain.ReasonUnavailable, s},
		{"it shortens the grace of a pod on its way out", newPod("a", leaving(time.Hour, 3600)), forcedSince(0), drain.NodeReachability{}, drain.Answer{}, drain.Delete, byBudgets, 5 * s},
		{"it does not ask twice for the same", newPod("a", leaving(s, 1)), forcedSince(5 * s), drain.NodeReachability{}, drain.Answer{}, drain.Wait, drain.ReasonTerminating, s},
		{"it waits a little for a pod that should have stopped", newPod("a", leaving(-58*s, 1)), forcedSince(5 * s), drain.NodeReachability{}, drain.Answer{}, drain.Wait, drain.ReasonOverdue, m},
		{"without it nothing is left behind", newPod("a", leaving(-time.Hour, 0)), anything, drain.NodeReachability{}, drain.Answer{}, drain.Wait, drain.ReasonOverdue, m},
		{"nobody stops a pod on an unreachable Node", newPod("a"), drain.ForMachine(time.Time{}), unreachable, drain.Answer{}, drain.ForceDelete, byForce, 5 * s},
		{"nor one that was told to stop", newPod("a", leaving(-time.Hour, 1)), drain.ForMachine(time.Time{}), unreachable, drain.Answer{}, drain.ForceDelete, byForce, 5 * s},
		{"and that does not wait for a refused deletion with grace", newPod("a"), drain.ForMachine(time.Time{}), unreachable, drain.Answer{Asked: drain.Delete, Until: now.Add(s)}, drain.ForceDelete, byForce, 5 * s},
		{"but waits for what finalizers hold there", newPod("a", withFinalizer, leaving(-m, 0)), drain.ForMachine(time.Time{}), unreachable, drain.Answer{}, drain.Wait, drain.ReasonOverdue, m},
		{"force alone does not lose local data", newPod("a", emptyDir), anchored(drain.Ladder{{After: 0, Action: drain.IgnoreBudgets, Grace: s}}), drain.NodeReachability{}, drain.Answer{}, drain.Block, drain.ReasonLocalStorage, 0},
		{"an unreachable Node alone does not lose an unmanaged pod", newPod("a", unmanaged), drain.Policy{UnreachableLadder: drain.Ladder{{After: 0, Action: drain.ForceDeletePods}}}, unreachable, drain.Answer{}, drain.Block, drain.ReasonUnmanaged, 0},
		{"a pod of a DaemonSet is left alone under force", newPod("a", ownedBy("DaemonSet"), emptyDir), forcedSince(0), drain.NodeReachability{}, drain.Answer{}, drain.Ignore, drain.ReasonStays, 0},
		{"a pod of the Node itself is left alone", newPod("a", ownedBy("Node")), drain.ForMachine(time.Time{}), unreachable, drain.Answer{}, drain.Ignore, drain.ReasonStays, 0},
		{"a pod without UID cannot be meant", newPod("a", func(p *corev1.Pod) { p.UID = "" }), forcedSince(0), drain.NodeReachability{}, drain.Answer{}, drain.Block, drain.ReasonNotEvaluated, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Reachability = tt.reach
			_, plan := drain.Step(answered(tt.policy, in, tt.answer), in, tt.policy, now)
			row := plan.Rows[0]
			var until time.Time
			if tt.until > 0 {
				until = now.Add(tt.until)
			}
			require.Equal(t, []any{tt.want, tt.reason, until}, []any{row.Verdict, row.Reason, row.Until})
		})
	}
}

// A rung that has just been reached is not held up by what was answered before.
func TestI9AnAnswerDoesNotPutARungOff(t *testing.T) {
	p := anchored(drain.Ladder{{Action: drain.IgnoreBudgets}, {After: time.Minute, Action: drain.IgnoreBudgets, Grace: time.Second}})
	in := observed(newPod("a"))
	at := now.Add(time.Minute)
	s, plan := drain.Step(drain.State{}, in, p, at.Add(-time.Second))
	require.Nil(t, plan.Rows[0].Grace)
	s.Answers = map[types.UID]drain.Answer{"uid-a": {Asked: drain.Delete, Reason: drain.ReasonUnavailable, Until: at.Add(50 * time.Second)}}
	s, plan = drain.Step(s, in, p, at)
	require.Equal(t, drain.Delete, plan.Rows[0].Verdict)
	require.Equal(t, int64(1), *plan.Rows[0].Grace)
	_, plan = drain.Step(s, in, p, at)
	require.Equal(t, drain.Wait, plan.Rows[0].Verdict, "but only once")
}

func TestB3GraceOverride(t *testing.T) {
	const s = time.Second
	del, evict := anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}), drain.Policy{}
	capped := anchored(drain.Ladder{{After: 0, Action: drain.IgnoreBudgets, Grace: 5 * s}})
	with := func(p drain.Policy, d time.Duration) drain.Policy { p.MaxGrace = d; return p }
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		want   int64 // negative for the pod's own
	}{
		{"an eviction leaves a pod its own grace", newPod("a"), evict, -1},
		{"so does a deletion", newPod("a"), del, -1},
		{"an eviction does not give grace to a pod that wants none", newPod("a", withGrace(0)), evict, -1},
		{"DD-12 a deletion gives a second to a pod that wants none", newPod("a", withGrace(0)), del, 1},
		{"DD-12 and to one that wants less than none", newPod("a", withGrace(-7)), del, 1},
		{"the policy caps the grace", newPod("a"), with(evict, 10*s), 10},
		{"it does not lengthen it", newPod("a"), with(evict, time.Hour), -1},
		{"nor for a pod that says nothing, which has 30 seconds", newPod("a", withoutGrace), with(evict, time.Hour), -1},
		{"but shortens it", newPod("a", withoutGrace), with(evict, 10*s), 10},
		{"a cap of less than a second is one second", newPod("a"), with(del, 1), 1},
		{"a negative cap is none", newPod("a"), with(del, -1), -1},
		{"a rung caps the grace", newPod("a"), capped, 5},
		{"the lower cap rules", newPod("a"), with(capped, 3*s), 3},
		{"whichever it is", newPod("a"), with(capped, 8*s), 5},
		{"a pod that is on its way out is told so", newPod("a", leaving(20*s, 30)), capped, 5},
		{"also one whose grace was longer than its own", newPod("a", withGrace(3), leaving(20*s, 30)), capped, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := drain.Decide(observed(tt.pod), tt.policy, now).Rows[0]
			if tt.want < 0 {
				require.Nil(t, row.Grace)
				return
			}
			require.NotNil(t, row.Grace)
			require.Equal(t, tt.want, *row.Grace)
		})
	}
}

// A drain whose deadline passed is never called drained, and says what it left and why.
func TestDD2DeadlineIsNotSuccess(t *testing.T) {
	budget := drain.Answer{Asked: drain.Evict, Reason: drain.ReasonBudget, Message: "web needs 2", Until: now.Add(time.Second)}
	pods := []*corev1.Pod{newPod("a"), newPod("b", unmanaged), newPod("c", leaving(-time.Minute, 30)), newPod("d", mirror), newPod("e")}
	run := func(end drain.Escalation) drain.Decision {
		p := anchored(drain.Ladder{{Action: end}})
		s := drain.State{Answers: map[types.UID]drain.Answer{"uid-a": budget}}
		_, plan := drain.Step(s, observed(pods...), p, now)
		require.True(t, plan.Over())
		require.True(t, plan.NextCheck.IsZero())
		require.Nil(t, plan.Fence)
		require.Empty(t, plan.Next)
		for _, row := range plan.Rows {
			require.Empty(t, row.Next)
			require.True(t, row.Until.IsZero(), row)
		}
		return plan
	}
	t.Run("giving up keeps the reasons", func(t *testing.T) {
		plan := run(drain.GiveUp)
		require.Equal(t, drain.GaveUp, plan.Outcome)
		want := []machinist.Reason{drain.ReasonBudget, drain.ReasonUnmanaged, drain.ReasonOverdue, drain.ReasonStays, drain.ReasonAbandoned}
		for i, row := range plan.Rows {
			require.Equal(t, want[i], row.Reason)
			require.Equal(t, i != 3, row.Verdict == drain.Block, row)
		}
		require.Equal(t, "web needs 2", plan.Rows[0].Message)
	})
	t.Run("going on names them", func(t *testing.T) {
		plan := run(drain.Proceed)
		require.Equal(t, drain.Proceeded, plan.Outcome)
		want := []string{"DisruptionBudget: web needs 2", "Unmanaged: no controller would create it again", "Overdue: it should have stopped by 2026-03-01T11:59:00Z", "it is a mirror pod, which the kubelet would create again", "Abandoned: it was not asked to go any more"}
		for i, row := range plan.Rows {
			require.Equal(t, want[i], row.Message)
			require.Equal(t, drain.Ignore, row.Verdict)
			require.Equal(t, i != 3, row.Reason == drain.ReasonAbandoned, row)
		}
		require.Empty(t, plan.Holds())
	})
	t.Run("of two ends going on counts", func(t *testing.T) {
		proceed, giveUp := drain.Ladder{{Action: drain.Proceed}}, drain.Ladder{{Action: drain.GiveUp}}
		in := observed(newPod("a"))
		in.Reachability.Unreachable = true
		for _, p := range []drain.Policy{{Ladder: proceed, UnreachableLadder: giveUp}, {Ladder: giveUp, UnreachableLadder: proceed}} {
			require.Equal(t, drain.Proceeded, drain.Decide(in, p, now).Outcome)
		}
	})
	t.Run("an end with nobody left is an ordinary one", func(t *testing.T) {
		p := anchored(drain.Ladder{{Action: drain.GiveUp}})
		require.Equal(t, drain.Drained, drain.Decide(observed(newPod("d", mirror)), p, now).Outcome)
	})
	t.Run("what is not waited for any more is not drained either", func(t *testing.T) {
		stuck := newPod("a", leaving(-time.Minute, 30))
		require.Equal(t, drain.Proceeded, drain.Decide(observed(stuck), drain.Policy{SkipTerminatingAfter: time.Second}, now).Outcome)
	})
	t.Run("an end that never fenced the Node is not drained", func(t *testing.T) {
		in := observed()
		in.Node = openNode()
		require.Equal(t, drain.Proceeded, drain.Decide(in, anchored(drain.Ladder{{Action: drain.Proceed}}), now).Outcome)
	})
}

// DD-3: nothing counts retries, so no number of them stalls a drain.
func TestDD3ShortTimeoutsDoNotStall(t *testing.T) {
	for _, timeout := range []time.Duration{0, 1, time.Second, 19 * time.Second} {
		c := climber{t: t, p: anchored(drain.Ladder{{After: timeout, Action: drain.IgnoreBudgets, Grace: time.Second}})}
		require.Equal(t, drain.Delete, c.verdict(timeout))
	}
}

// DD-12: whatever the ladder, only ForceDeletePods takes a pod off the API.
func TestDD12OnlyAnExplicitRungLeavesNoGrace(t *testing.T) {
	for name, l := range map[string]drain.Ladder{
		"ForceAfter": {{After: 0, Action: drain.IgnoreBudgets, Grace: time.Second}},
		"ForMachine": drain.ForMachine(now).Ladder,
	} {
		t.Run(name, func(t *testing.T) {
			p := anchored(l)
			p.MaxGrace = 1
			in := observed(newPod("a"), newPod("b", withGrace(0)), newPod("c", leaving(time.Hour, 3600)))
			for _, row := range drain.Decide(in, p, now).Rows {
				require.NotEqual(t, drain.ForceDelete, row.Verdict)
				require.True(t, row.Grace == nil && row.Verdict == drain.Evict || *row.Grace >= 1, row)
			}
		})
	}
}
