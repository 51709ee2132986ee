// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// anchored is a policy whose ladder is counted from now.
func anchored(l drain.Ladder) drain.Policy { return drain.Policy{Ladder: l, EscalateFrom: now} }

// forcedSince returns the policy of a machine whose force began d ago.
func forcedSince(d time.Duration) drain.Policy { return drain.ForMachine(now.Add(-d)) }

func withGrace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func withoutGrace(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }

// drainer steps through a drain of one pod.
type drainer struct {
	p     drain.Policy
	reach drain.NodeReachability
	state drain.State
}

func (c *drainer) at(after time.Duration, pods ...*corev1.Pod) drain.Decision {
	in := observed(append(pods, newPod("z"))...)
	in.Reachability = c.reach
	var d drain.Decision
	c.state, d = drain.Step(c.state, in, c.p, now.Add(after))
	return d
}

// action returns the action of the last pod, or the outcome.
func (c *drainer) action(after time.Duration) string {
	d := c.at(after)
	if d.Over() {
		return string(d.Outcome)
	}
	return string(d.Rows[len(d.Rows)-1].Action)
}

func TestStep_RungsAreReached_RequestForThePod(t *testing.T) {
	const s, m = time.Second, time.Minute
	silent := drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
	never := drain.ForMachine(time.Time{})
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		reach  drain.NodeReachability
		last   drain.Response
		want   string
		until  time.Duration // zero for none
	}{
		{"at the time of the rung", newPod("a"), forcedSince(0), drain.NodeReachability{}, drain.Response{}, "a delete IgnoreBudgets", 5 * s},
		{"a nanosecond before the rung", newPod("a"), forcedSince(-1), drain.NodeReachability{}, drain.Response{}, "a evict Evictable", 5 * s},
		{"a deletion after a refused eviction", newPod("a"), forcedSince(5 * s), drain.NodeReachability{}, drain.Response{Request: drain.Evict, Until: now.Add(s)}, "a delete IgnoreBudgets", 5 * s},
		{"a deletion after a refused deletion", newPod("a"), forcedSince(5 * s), drain.NodeReachability{}, drain.Response{Request: drain.Delete, Reason: "Unavailable", Until: now.Add(s)}, "a wait Unavailable", s},
		{"a terminating pod with a long grace period", newPod("a", terminating(time.Hour, 3600)), forcedSince(0), drain.NodeReachability{}, drain.Response{}, "a delete IgnoreBudgets", 5 * s},
		{"a terminating pod with the same grace period", newPod("a", terminating(s, 1)), forcedSince(5 * s), drain.NodeReachability{}, drain.Response{}, "a wait Terminating", s},
		{"a terminating pod after its grace period", newPod("a", terminating(-58*s, 1)), forcedSince(5 * s), drain.NodeReachability{}, drain.Response{}, "a wait Overdue", m},
		{"a pod on an unreachable Node", newPod("a"), never, silent, drain.Response{}, "a force-delete ForceDeletePods", 5 * s},
		{"a terminating pod on an unreachable Node", newPod("a", terminating(-time.Hour, 1)), never, silent, drain.Response{}, "a force-delete ForceDeletePods", 5 * s},
		{"a force-deletion after a refused deletion", newPod("a"), never, silent, drain.Response{Request: drain.Delete, Until: now.Add(s)}, "a force-delete ForceDeletePods", 5 * s},
		{"a force-deleted pod with a finalizer", newPod("a", withFinalizer, terminating(-m, 0)), never, silent, drain.Response{}, "a wait Overdue", m},
		{"an unreachable Node without ladder", newPod("a"), drain.Policy{}, silent, drain.Response{}, "a evict Evictable", 5 * s},
		{"a Node that is unreachable for less than five minutes", newPod("a"), never, drain.NodeReachability{Unreachable: true, Since: now.Add(-5*m + 1)}, drain.Response{}, "a evict Evictable", 5 * s},
		{"an unmanaged pod on an unreachable Node", newPod("a", unmanaged), drain.Policy{UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods}}}, silent, drain.Response{}, "a block Unmanaged", 0},
		{"an unmanaged pod with local data on a machine", newPod("a", unmanaged, emptyDir), never, drain.NodeReachability{}, drain.Response{}, "a evict Evictable", 5 * s},
		{"a response of another clock", newPod("a"), drain.Policy{}, drain.NodeReachability{}, drain.Response{Request: drain.Evict, Reason: "Unavailable", Until: now.Add(24 * time.Hour)}, "a evict Evictable", 5 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Reachability = tt.reach
			state, _ := drain.Step(drain.State{}, in, tt.policy, now.Add(-time.Nanosecond)) // so that no rung is new
			state.Responses = map[types.UID]drain.Response{"uid-a": tt.last}
			_, d := drain.Step(state, in, tt.policy, now)
			require.Equal(t, []any{tt.want, tt.until}, []any{rows(d), max(0, d.Rows[0].Until.Sub(now))})
			require.True(t, d.Rows[0].Reason != drain.ReasonOverdue || !tt.reach.Unreachable || d.Rows[0].Message[len(d.Rows[0].Message)-len("does not answer"):] == "does not answer")
		})
	}
}

// TestStep_NewRung_RequestsAtOnceAndOnce asserts that earlier responses do not delay the requests of a
// new rung.
func TestStep_NewRung_RequestsAtOnceAndOnce(t *testing.T) {
	for _, p := range []drain.Policy{
		anchored(drain.Ladder{{Action: drain.IgnoreBudgets}, {After: time.Minute, Action: drain.IgnoreBudgets, Grace: time.Second}}),
		{Ladder: drain.Ladder{{After: time.Minute, Action: drain.IgnoreBudgets, Grace: time.Second}}, UnreachableLadder: drain.Ladder{{Action: drain.IgnoreBudgets}}},
	} {
		c := drainer{p: p, reach: drain.NodeReachability{Unreachable: true}}
		require.Nil(t, c.at(0).Rows[0].Grace)
		c.at(59 * time.Second)
		c.state.Responses = map[types.UID]drain.Response{"uid-z": {Request: drain.Delete, Reason: "Unavailable", Until: now.Add(110 * time.Second)}}
		d := c.at(time.Minute)
		require.Equal(t, []any{drain.Delete, int64(1)}, []any{d.Rows[0].Action, *d.Rows[0].Grace})
		require.Equal(t, "wait", c.action(time.Minute))
	}
}

func TestDecide_Grace_OfEachRequest(t *testing.T) {
	const s = time.Second
	del, evict := anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}), drain.Policy{}
	capped := anchored(drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 5 * s}})
	with := func(p drain.Policy, d time.Duration) drain.Policy { p.Grace = &d; return p }
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		want   int64 // negative for the pod's own
	}{
		{"an eviction", newPod("a"), evict, -1},
		{"a deletion, at a deadline that is over", newPod("a"), del, -1},
		{"an eviction of a pod with zero", newPod("a", withGrace(0)), evict, -1},
		{"a deletion of a pod with zero", newPod("a", withGrace(0)), del, 1},
		{"a deletion of a pod with a negative one", newPod("a", withGrace(-7)), del, 1},
		{"that of the policy", newPod("a"), with(evict, 10*s), 10},
		{"that of the policy, which is longer", newPod("a"), with(evict, time.Hour), 3600},
		{"that of the policy, which is the default", newPod("a", withoutGrace), with(evict, 30*s), -1},
		{"less than a second is a second", newPod("a"), with(del, 1), 1},
		{"zero", newPod("a"), with(evict, 0), 0},
		{"zero, a deletion", newPod("a"), with(del, 0), 0},
		{"zero, a terminating pod", newPod("a", terminating(20*s, 30)), with(capped, 0), 0},
		{"a limit of a rung", newPod("a"), capped, 5},
		{"the policy has the shorter one", newPod("a"), with(capped, 3*s), 3},
		{"the rung has the shorter one", newPod("a"), with(capped, 8*s), 5},
		{"a terminating pod", newPod("a", terminating(20*s, 30)), capped, 5},
		{"a terminating pod that was deleted with more than its own", newPod("a", withGrace(3), terminating(20*s, 30)), capped, 3},
		{"the first ladder has the shorter limit", newPod("a"), drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 2 * s}}, UnreachableLadder: capped.Ladder}, 2},
		{"the second ladder has the shorter limit", newPod("a"), drain.Policy{Ladder: capped.Ladder, UnreachableLadder: drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 2 * s}}}, 2},
		{"a later milder rung", newPod("a"), drain.Policy{Ladder: drain.Ladder{{Action: drain.ForceDeletePods}}, UnreachableLadder: capped.Ladder}, 0},
		{"a machine", newPod("a", terminating(time.Hour, 3600)), forcedSince(0), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Reachability.Unreachable = true
			row := drain.Decide(in, tt.policy, now).Rows[0]
			if tt.want < 0 {
				require.Nil(t, row.Grace)
				return
			}
			require.Equal(t, tt.want, *row.Grace)
		})
	}
}

func TestDecide_RetryEvery_IsWithinASecondAndAnHour(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{-1: 5 * time.Second, 0: 5 * time.Second, 1: time.Second, time.Minute: time.Minute, math.MaxInt64: time.Hour} {
		row := drain.Decide(observed(newPod("a")), drain.Policy{RetryEvery: every}, now).Rows[0]
		require.Equal(t, now.Add(want), row.Until, every)
	}
}

func TestPolicy_GraceIsNegative_Invalid(t *testing.T) {
	require.ErrorContains(t, drain.Policy{Grace: ptr.To(-time.Second)}.Validate(), "the grace period -1s is negative")
	require.NoError(t, drain.Policy{Grace: ptr.To(time.Duration(0))}.Validate())
}

// TestDecide_LadderEnds_NamesWhatIsLeft asserts that a drain whose deadline passed is not Drained,
// and names the pods that are left with a reason.
func TestDecide_LadderEnds_NamesWhatIsLeft(t *testing.T) {
	budget := drain.Response{Request: drain.Evict, Reason: drain.ReasonBudget, Message: "web needs 2", Until: now.Add(time.Second)}
	pods := []*corev1.Pod{newPod("a"), newPod("b", unmanaged), newPod("c", terminating(-time.Minute, 30)), newPod("d", mirror), newPod("e")}
	for end, want := range map[drain.Escalation]string{
		drain.GiveUp:  "a block DisruptionBudget, b block Unmanaged, c block Overdue, d ignore Stays, e block Abandoned",
		drain.Proceed: "a ignore Abandoned, b ignore Abandoned, c ignore Abandoned, d ignore Stays, e ignore Abandoned",
	} {
		s := drain.State{Responses: map[types.UID]drain.Response{"uid-a": budget}}
		_, d := drain.Step(s, observed(pods...), anchored(drain.Ladder{{Action: end}}), now)
		require.Equal(t, want, rows(d))
		require.True(t, d.NextCheck.IsZero() && d.Cordon == nil && d.Next == "")
		for _, row := range d.Rows {
			require.True(t, row.Next == "" && row.NextAt.IsZero() && row.Until.IsZero(), row)
		}
		if end == drain.GiveUp {
			require.Equal(t, []any{drain.GaveUp, "web needs 2"}, []any{d.Outcome, d.Rows[0].Message})
			continue
		}
		require.Equal(t, drain.Proceeded, d.Outcome)
		require.Equal(t, "DisruptionBudget: web needs 2", d.Rows[0].Message)
		require.Equal(t, "Abandoned: the drain ended before the pod was deleted", d.Rows[4].Message)
		require.Empty(t, d.Holds())
	}
	proceed, giveUp := drain.Ladder{{Action: drain.Proceed}}, drain.Ladder{{Action: drain.GiveUp}}
	silent := observed(newPod("a"))
	silent.Reachability.Unreachable = true
	for name, tt := range map[string]struct {
		in   drain.Observation
		p    drain.Policy
		want drain.Outcome
	}{
		"Proceed in the first of two ladders":  {silent, drain.Policy{Ladder: proceed, UnreachableLadder: giveUp}, drain.Proceeded},
		"Proceed in the second of two ladders": {silent, drain.Policy{Ladder: giveUp, UnreachableLadder: proceed}, drain.Proceeded},
		"no rung is reached after GiveUp":      {silent, drain.Policy{Ladder: giveUp, UnreachableLadder: drain.Ladder{{After: time.Hour, Action: drain.ForceDeletePods}}}, drain.GaveUp},
		"an end without pods is Drained":       {observed(newPod("d", mirror)), anchored(giveUp), drain.Drained},
		"an end before the cordon":             {onOpenNode(), anchored(proceed), drain.Proceeded},
	} {
		t.Run(name, func(t *testing.T) {
			d := drain.Decide(tt.in, tt.p, now)
			require.Equal(t, tt.want, d.Outcome)
			require.Empty(t, d.Next)
		})
	}
}

// TestForMachine_Modes_ForceAtTheirTimes plays the modes of MCM: normal, forced by time or label,
// and on an unreachable Node.
func TestForMachine_Modes_ForceAtTheirTimes(t *testing.T) {
	const m = time.Minute
	type steps []struct {
		at   time.Duration
		want string
	}
	for _, tt := range []struct {
		name   string
		p      drain.Policy
		silent bool
		steps  steps
	}{
		{"without a timeout pods are only evicted", drain.ForMachine(time.Time{}), false, steps{{0, "evict"}, {24 * time.Hour, "evict"}}},
		{"pods are deleted for a minute after the timeout", forcedSince(-2 * m), false, steps{{0, "evict"}, {2*m - 1, "evict"}, {2 * m, "delete"}, {3*m - 1, "delete"}, {3 * m, "Proceeded"}}},
		{"force now: a label deletes pods for a minute", forcedSince(time.Hour), false, steps{{0, "delete"}, {m - 1, "delete"}, {m, "Proceeded"}}},
		{"a Node that is unreachable for five minutes", drain.ForMachine(time.Time{}), true, steps{{0, "force-delete"}, {m - 1, "force-delete"}, {m, "Proceeded"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.p.Validate())
			c := drainer{p: tt.p, reach: drain.NodeReachability{Unreachable: tt.silent, Since: now.Add(-5 * m)}}
			for _, step := range tt.steps {
				require.Equal(t, step.want, c.action(step.at), step.at)
			}
		})
	}
}

// TestForMachine_BudgetBlocksAPod_EvictsCriticalPodsAtOnce asserts that critical pods are evicted
// at once, although a budget holds another pod.
func TestForMachine_BudgetBlocksAPod_EvictsCriticalPodsAtOnce(t *testing.T) {
	in := observed(newPod("blocked"), newPod("critical", withPriority(2000000000), goldenLabeled("other")))
	in.Budgets = drain.All(exhausted("web", goldenCovering("web")))
	require.Equal(t, "blocked wait DisruptionBudget, critical evict Evictable", rows(drain.Decide(in, drain.ForMachine(now.Add(time.Hour)), now)))
}

// TestStep_Deadlines_AreAbsolute asserts that deadlines count from EscalateFrom of the policy.
// TestStep_RandomLadders_ReachRungsAtTheirDeadlines has the other rules of rungs.
func TestStep_Deadlines_AreAbsolute(t *testing.T) {
	const m = time.Minute
	for _, entered := range []time.Duration{0, 30 * m, 59 * m} {
		c := drainer{p: forcedSince(-time.Hour)}
		require.Equal(t, now.Add(time.Hour), c.at(entered).NextAt)
		c.p = drain.ForMachine(now)
		require.Equal(t, "delete", c.action(entered), "a label counts in the next step")
	}
	t.Run("no timeout is too short", func(t *testing.T) {
		for _, timeout := range []time.Duration{0, 1, time.Second, 19 * time.Second} {
			c := drainer{p: anchored(drain.Ladder{{After: timeout, Action: drain.IgnoreBudgets, Grace: time.Second}})}
			require.Equal(t, "delete", c.action(timeout))
		}
	})
	t.Run("without anchor a drain that began in the future begins now", func(t *testing.T) {
		c := drainer{p: drain.Policy{Ladder: drain.Ladder{{After: 10 * m, Action: drain.IgnoreBudgets}, {After: 20 * m, Action: drain.Proceed}}}}
		c.at(time.Hour)
		for at, want := range map[time.Duration]string{0: "evict", 10*m - 1: "evict"} {
			require.Equal(t, want, c.action(at))
		}
		require.Equal(t, "delete", c.action(10*m), "the future start is ignored")
		d := c.at(10 * m)
		require.Equal(t, []any{drain.Proceed, drain.Proceed, now.Add(20 * m), now.Add(20 * m)}, []any{d.Next, d.Rows[0].Next, d.NextAt, d.Rows[0].NextAt})
	})
	t.Run("a policy that is changed counts at once", func(t *testing.T) {
		c := drainer{p: anchored(drain.Ladder{{After: 10 * m, Action: drain.IgnoreBudgets}})}
		require.Equal(t, "delete", c.action(12*m))
		c.p.Ladder = drain.Ladder{{After: 5 * m, Action: drain.IgnoreBudgets}, {After: 15 * m, Action: drain.Proceed}}
		require.Equal(t, now.Add(22*m), c.at(13*m).NextAt, "the ladder counts from the first rung, which was reached after 12 minutes")
		c.p.Ladder = nil
		require.Equal(t, "evict", c.action(30*m))
	})
	t.Run("an unreachable Node is counted from its condition", func(t *testing.T) {
		c := drainer{p: drain.Policy{UnreachableLadder: drain.Ladder{{After: 5 * m, Action: drain.ForceDeletePods}}}, reach: drain.NodeReachability{Unreachable: true, Since: now.Add(-4 * m)}}
		require.Equal(t, now.Add(m), c.at(0).NextAt)
		require.Equal(t, "force-delete", c.action(m))
		c.reach = drain.NodeReachability{}
		require.Equal(t, "evict", c.action(2*m))
		require.Empty(t, c.state.UnreachableReached)
		c.reach = drain.NodeReachability{Unreachable: true, Since: now.Add(time.Hour)}
		require.Equal(t, "evict", c.action(3*m))
		require.Equal(t, "force-delete", c.action(8*m), "a time in the future is ignored")
	})
	t.Run("of two rungs at one time that of the first ladder is next", func(t *testing.T) {
		c := drainer{p: drain.Policy{Ladder: drain.Ladder{{After: m, Action: drain.IgnoreBudgets}}, UnreachableLadder: drain.Ladder{{After: m, Action: drain.ForceDeletePods}}}, reach: drain.NodeReachability{Unreachable: true}}
		require.Equal(t, drain.IgnoreBudgets, c.at(0).Next)
	})
}

func TestReachabilityOf_ReadyCondition_UnknownIsUnreachable(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true, "": true,
	} {
		node := newNode()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		require.Equal(t, want, drain.ReachabilityOf(node).Unreachable, "%q", status)
	}
	require.Zero(t, drain.ReachabilityOf(nil))
}

func TestLadder_Validate_NamesTheRung(t *testing.T) {
	for _, tt := range []struct {
		ladder  drain.Ladder
		rung    int
		problem string // empty if there is none
	}{
		{nil, 0, ""},
		{drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Second}, {Action: drain.Proceed}}, 0, ""},
		{drain.Ladder{{After: -1, Action: drain.IgnoreBudgets}}, 0, "negative"},
		{drain.Ladder{{After: 2, Action: drain.IgnoreBudgets}, {After: 1, Action: drain.Proceed}}, 1, "earlier than the previous rung"},
		{drain.Ladder{{Action: drain.Proceed}, {Action: drain.IgnoreBudgets}}, 1, "after the end"},
		{drain.Ladder{{Action: drain.GiveUp}, {Action: drain.Proceed}}, 1, "after the end"},
		{drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 1}}, 0, "less than a second"},
		{drain.Ladder{{Action: drain.IgnoreBudgets, Grace: time.Second}, {Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Minute}}, 2, "longer than that of an earlier rung"},
		{drain.Ladder{{Action: drain.IgnoreBudgets, Grace: time.Minute}, {Action: drain.IgnoreBudgets, Grace: time.Second}}, 0, ""},
		{drain.Ladder{{}}, 0, `the action ""`},
	} {
		err := tt.ladder.Validate()
		if tt.problem == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, fmt.Sprintf("drain: rung %d: ", tt.rung))
		require.ErrorContains(t, err, tt.problem)
	}
	require.Equal(t, "after 1m0s ForceDeletePods (grace 2s)", drain.Rung{After: time.Minute, Action: drain.ForceDeletePods, Grace: 2 * time.Second}.String())
}

func TestFeasible_BeforeTheFirstWrite_NamesTheObstacles(t *testing.T) {
	never, hour := newBudget("web", 0), time.Hour
	for _, tt := range []struct {
		name      string
		pod       *corev1.Pod
		budgets   []*budgetType
		ladder    drain.Ladder
		obstacles int
	}{
		{"a pod that may be evicted", newPod("a"), nil, nil, 0},
		{"a budget that allows nothing now", newPod("a"), []*budgetType{exhausted("web")}, nil, 0},
		{"a budget that never allows a disruption", newPod("a"), []*budgetType{never}, nil, 1},
		{"unless the ladder ignores budgets", newPod("a"), []*budgetType{never}, drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}}, 0},
		{"unless the ladder force-deletes pods", newPod("a"), []*budgetType{never}, drain.Ladder{{After: hour, Action: drain.ForceDeletePods}}, 0},
		{"a ladder that gives up", newPod("a"), []*budgetType{never}, drain.Ladder{{After: hour, Action: drain.GiveUp}}, 1},
		{"budgets that overlap", newPod("a"), []*budgetType{newBudget("web", 1), newBudget("all", 1)}, nil, 1},
		{"an unmanaged pod", newPod("a", unmanaged), nil, drain.Ladder{{After: hour, Action: drain.IgnoreBudgets}}, 1},
		{"an unmanaged pod and a ladder that proceeds", newPod("a", unmanaged), nil, drain.Ladder{{After: hour, Action: drain.Proceed}}, 0},
		{"a pod that is ignored", newPod("a", mirror), nil, nil, 0},
		{"an overdue pod", newPod("a", terminating(-hour, 30)), nil, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod, newPod("free", goldenLabeled("db")))
			in.Budgets = drain.All(tt.budgets...)
			// a ladder of unreachable Nodes does not help on others
			d := drain.Decide(in, drain.Policy{Ladder: tt.ladder, UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods}}}, now)
			require.Len(t, d.Obstacles(), tt.obstacles)
			require.Equal(t, tt.obstacles == 0, d.Feasible())
			require.Equal(t, drain.Evict, d.Rows[1].Action, "other pods are evicted")
		})
	}
	forbidden := []drain.Row{{Action: drain.Wait, Reason: "Forbidden"}}
	for name, tt := range map[string]struct {
		d    drain.Decision
		want bool
	}{
		"nothing was observed":          {drain.Decide(drain.Observation{}, drain.Policy{}, now), false},
		"a policy that is not valid":    {drain.Decide(observed(newPod("a")), anchored(drain.Ladder{{After: -1, Action: drain.GiveUp}}), now), false},
		"a Node that was uncordoned":    {drain.Decision{Gates: []machinist.Hold{{Reason: drain.ReasonUncordoned}}}, false},
		"another gate":                  {drain.Decision{Gates: []machinist.Hold{{Reason: "Other"}}}, true},
		"an obstacle that expires":      {drain.Decision{Rows: []drain.Row{{Action: drain.Block, Reason: drain.ReasonDoNotDisrupt, Until: now}}}, true},
		"a drain that was given up":     {drain.Decision{Outcome: drain.GaveUp, Rows: []drain.Row{{Action: drain.Wait, Reason: drain.ReasonOverdue}}}, false},
		"a missing permission":          {drain.Decision{Rows: forbidden, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}, false},
		"a missing permission, Proceed": {drain.Decision{Rows: forbidden, Ladder: drain.Ladder{{Action: drain.Proceed}}}, true},
	} {
		require.Equal(t, tt.want, tt.d.Feasible(), name)
		require.Equal(t, tt.d.Outcome == drain.GaveUp || name == "a missing permission", len(tt.d.Obstacles()) > 0, name)
	}
}
