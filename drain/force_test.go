// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	never, forced := drain.ForMachine(time.Time{}), forcedSince(5*s)
	silent := drain.NodeReachability{Unreachable: true, Since: now.Add(-time.Hour)}
	refused := func(request drain.Action, until time.Duration) drain.Response {
		return drain.Response{Request: request, Reason: "Unavailable", Until: now.Add(until)}
	}
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		reach  drain.NodeReachability
		last   drain.Response
		want   string
		until  time.Duration
	}{
		{"a deletion after a refused eviction", newPod("a"), forced, drain.NodeReachability{}, refused(drain.Evict, s), "a delete IgnoreBudgets", 5 * s},
		{"a deletion after a refused deletion", newPod("a"), forced, drain.NodeReachability{}, refused(drain.Delete, s), "a wait Unavailable", s},
		{"a force-deletion after a refused deletion", newPod("a"), never, silent, refused(drain.Delete, s), "a force-delete ForceDeletePods", 5 * s},
		{"a response of another clock", newPod("a"), drain.Policy{}, drain.NodeReachability{}, refused(drain.Evict, 24*time.Hour), "a evict Evictable", 5 * s},
		{"a terminating pod with the same grace period", newPod("a", terminating(s, 1)), forced, drain.NodeReachability{}, drain.Response{}, "a wait Terminating", s},
		{"a force-deleted pod with a finalizer", newPod("a", withFinalizer, terminating(-m, 0)), never, silent, drain.Response{}, "a wait Overdue", m},
		{"an unreachable Node without ladder", newPod("a"), drain.Policy{}, silent, drain.Response{}, "a evict Evictable", 5 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Reachability = tt.reach
			state, _ := drain.Step(drain.State{}, in, tt.policy, now.Add(-time.Nanosecond)) // so that no rung is new
			state.Responses = map[types.UID]drain.Response{"uid-a": tt.last}
			_, d := drain.Step(state, in, tt.policy, now)
			require.Equal(t, []any{tt.want, tt.until}, []any{rows(d), d.Rows[0].Until.Sub(now)})
			overdue := d.Rows[0].Reason == drain.ReasonOverdue
			require.Equal(t, overdue && tt.reach.Unreachable, strings.HasSuffix(d.Rows[0].Message, "does not answer"))
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
		{"an eviction of a pod with zero", newPod("a", withGrace(0)), evict, -1},
		{"a deletion of a pod with zero", newPod("a", withGrace(0)), del, 1},
		{"that of the policy", newPod("a"), with(evict, 10*s), 10},
		{"that of the policy, which is longer", newPod("a"), with(evict, time.Hour), 3600},
		{"that of the policy, which is the default", newPod("a", withoutGrace), with(evict, 30*s), -1},
		{"less than a second is a second", newPod("a"), with(del, 1), 1},
		{"zero", newPod("a"), with(evict, 0), 0},
		{"zero, a deletion", newPod("a"), with(del, 0), 0},
		{"zero, a terminating pod", newPod("a", terminating(20*s, 30)), with(capped, 0), 0},
		{"the policy has the shorter one", newPod("a"), with(capped, 3*s), 3},
		{"the rung has the shorter one", newPod("a"), with(capped, 8*s), 5},
		{"a terminating pod that was deleted with more than its own", newPod("a", withGrace(3), terminating(20*s, 30)), capped, 3},
		{"the first ladder has the shorter limit", newPod("a"), drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 2 * s}}, UnreachableLadder: capped.Ladder}, 2},
		{"the second ladder has the shorter limit", newPod("a"), drain.Policy{Ladder: capped.Ladder, UnreachableLadder: drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 2 * s}}}, 2},
		{"a later milder rung", newPod("a"), drain.Policy{Ladder: drain.Ladder{{Action: drain.ForceDeletePods}}, UnreachableLadder: capped.Ladder}, 0},
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
		require.Equal(t, []any{want, escalationLaws[end].ends}, []any{rows(d), d.Outcome})
		require.True(t, d.NextCheck.IsZero() && d.Cordon == nil && d.Next == "")
		for _, row := range d.Rows {
			require.True(t, row.Next == "" && row.NextAt.IsZero() && row.Until.IsZero(), row)
		}
		require.Contains(t, d.Rows[0].Message, "web needs 2")
		require.Contains(t, d.Rows[4].Message, "the drain ended before the pod was deleted")
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
	budgets, force := drain.IgnoreBudgets, drain.ForceDeletePods
	for _, entered := range []time.Duration{0, 30 * m, 59 * m} {
		c := drainer{p: forcedSince(-time.Hour)}
		require.Equal(t, now.Add(time.Hour), c.at(entered).NextAt)
		c.p = drain.ForMachine(now)
		require.Equal(t, "delete", c.action(entered), "a label counts in the next step")
	}
	for _, timeout := range []time.Duration{0, 1, time.Second, 19 * time.Second} {
		c := drainer{p: anchored(drain.Ladder{{After: timeout, Action: budgets, Grace: time.Second}})}
		require.Equal(t, "delete", c.action(timeout), "no timeout is too short")
	}
	t.Run("without anchor a drain that began in the future begins now", func(t *testing.T) {
		c := drainer{p: drain.Policy{Ladder: drain.Ladder{{After: 10 * m, Action: budgets}, {After: 20 * m, Action: drain.Proceed}}}}
		c.at(time.Hour)
		require.Equal(t, []string{"evict", "evict", "delete"}, []string{c.action(0), c.action(10*m - 1), c.action(10 * m)})
		d := c.at(10 * m)
		require.Equal(t, []any{drain.Proceed, drain.Proceed, now.Add(20 * m), now.Add(20 * m)}, []any{d.Next, d.Rows[0].Next, d.NextAt, d.Rows[0].NextAt})
	})
	t.Run("a policy that is changed counts at once", func(t *testing.T) {
		c := drainer{p: anchored(drain.Ladder{{After: 10 * m, Action: budgets}})}
		require.Equal(t, "delete", c.action(12*m))
		c.p.Ladder = drain.Ladder{{After: 5 * m, Action: budgets}, {After: 15 * m, Action: drain.Proceed}}
		require.Equal(t, now.Add(22*m), c.at(13*m).NextAt, "the ladder counts from the first rung, which was reached after 12 minutes")
		c.p.Ladder = nil
		require.Equal(t, "evict", c.action(30*m))
	})
	t.Run("an unreachable Node is counted from its condition", func(t *testing.T) {
		c := drainer{p: drain.Policy{UnreachableLadder: drain.Ladder{{After: 5 * m, Action: force}}}}
		c.reach = drain.NodeReachability{Unreachable: true, Since: now.Add(-4 * m)}
		require.Equal(t, now.Add(m), c.at(0).NextAt)
		require.Equal(t, "force-delete", c.action(m))
		c.reach.Unreachable = false
		require.Equal(t, "evict", c.action(2*m))
		require.Empty(t, c.state.UnreachableReached)
		c.reach = drain.NodeReachability{Unreachable: true, Since: now.Add(time.Hour)}
		require.Equal(t, "evict", c.action(3*m))
		require.Equal(t, "force-delete", c.action(8*m), "a time in the future is ignored")
	})
	c := drainer{p: drain.Policy{Ladder: drain.Ladder{{After: m, Action: budgets}}}}
	c.p.UnreachableLadder = drain.Ladder{{After: m, Action: force}}
	c.reach.Unreachable = true
	require.Equal(t, budgets, c.at(0).Next, "of two rungs at one time that of the first ladder is next")
}

// reference is the obvious way to reach rungs.
type reference struct{ at map[int]time.Time }

// reached returns how many rungs are reached at a time, how many are for the first time, and
// when the next one is due.
func (w *reference) reached(l drain.Ladder, start, now time.Time) (n, fresh int, next time.Time) {
	for i, rung := range l {
		at := start.Add(rung.After)
		if final := rung.Action == drain.ForceDeletePods || rung.Action == drain.Proceed || rung.Action == drain.GiveUp; final && i > 0 {
			pause := rung.After - l[i-1].After
			if rung.Action != drain.ForceDeletePods {
				pause = max(pause, time.Second)
			}
			if late := w.at[i-1].Add(pause); late.After(at) {
				at = late
			}
		}
		if now.Before(at) {
			for j := i; j < len(l); j++ {
				delete(w.at, j)
			}
			return i, fresh, at
		}
		if before, known := w.at[i]; !known || before.After(now) {
			w.at[i] = now
			fresh++
		}
	}
	return len(l), fresh, time.Time{}
}

// TestStep_RandomLadders_ReachRungsAtTheirDeadlines asserts that a rung is applied in the first
// step at or after its deadline, and that this step is requested no later than the deadline.
// Latencies, responses, crashes with and without the state, writes of others and jumps of the clock
// are random.
func TestStep_RandomLadders_ReachRungsAtTheirDeadlines(t *testing.T) {
	acted := map[drain.Escalation]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 5))
		var l drain.Ladder
		for _, rung := range randomLadder(r) {
			twice := func(below drain.Rung) bool { return below.Action == rung.Action && below.Grace == rung.Grace }
			if !slices.ContainsFunc(l, twice) {
				l = append(l, rung)
			}
		}
		p := anchored(l)
		var state drain.State
		var results []drain.Result
		w := reference{at: map[int]time.Time{}}
		at := now
		for range 60 {
			in := observed(newPod("a"), newPod("b", func(p *corev1.Pod) { p.Labels["written"] = "often" }))
			in.Results, results = results, nil
			next, plan := drain.Step(state, in, p, at)
			n, fresh, due := w.reached(l, now, at)
			require.Len(t, plan.Rungs, n, "seed %d: %v at %s: %v", seed, l, at.Sub(now), plan.Rungs)
			for _, rung := range l[n-fresh : n] {
				acted[rung.Action]++
			}
			if plan.Over() {
				require.NotEmpty(t, escalationLaws[l[n-1].Action].ends)
				break
			}
			require.False(t, !due.IsZero() && plan.NextCheck.After(due), "seed %d: the next check is not after a deadline", seed)
			row := plan.Rows[0]
			if fresh > 0 {
				require.Equal(t, strongest(l[:n]), row.Action, "seed %d: %v at %s: a reached rung is applied in the same step", seed, l, at.Sub(now))
			}
			require.LessOrEqual(t, strengthOf(row.Action), strengthOf(strongest(l[:n])), "a rung is not applied early")
			for i := range plan.Rows {
				if row := plan.Rows[i]; strengthOf(row.Action) > 0 && r.IntN(3) > 0 {
					err := []error{nil, apierrors.NewTooManyRequests("slow down", r.IntN(90)), apierrors.NewInternalError(errors.New("boom")), apierrors.NewTimeoutError("late", 3)}[r.IntN(4)]
					results = append(results, drain.Result{Row: row, Err: err, At: at})
				}
			}
			state = next
			step := plan.NextCheck.Sub(at) + time.Duration(r.IntN(3))*time.Duration(r.IntN(2000))*time.Millisecond
			switch r.IntN(14) {
			case 0: // a crash that loses the state
				state, results = drain.State{}, nil
				w.at = map[int]time.Time{}
			case 1: // a crash that keeps the state, and a pause
				step += time.Duration(r.IntN(90)) * time.Second
				results = nil
			case 2: // another client writes something
				step = time.Duration(1+r.IntN(500)) * time.Millisecond
			case 3: // the clock is set
				step = time.Duration(r.IntN(120)-60) * time.Second
			}
			at = at.Add(step)
		}
	}
	for e := range escalationLaws {
		require.Greater(t, acted[e], 20, "random ladders do not reach %s: %v", e, acted)
	}
}

func strengthOf(v drain.Action) int {
	return map[drain.Action]int{drain.Evict: 1, drain.Delete: 2, drain.ForceDelete: 3}[v]
}

func strongest(l drain.Ladder) drain.Action {
	v := drain.Evict
	for _, rung := range l {
		switch rung.Action {
		case drain.ForceDeletePods:
			return drain.ForceDelete
		case drain.IgnoreBudgets:
			v = drain.Delete
		}
	}
	return v
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
	budgets, force, proceed := drain.IgnoreBudgets, drain.ForceDeletePods, drain.Proceed
	const s, m = time.Second, time.Minute
	for _, tt := range []struct {
		ladder  drain.Ladder
		problem string // empty if there is none
	}{
		{nil, ""},
		{drain.Ladder{{Action: budgets, Grace: m}, {Action: force, Grace: s}, {Action: proceed}}, ""},
		{drain.Ladder{{After: -1, Action: budgets}}, "0: its time is negative"},
		{drain.Ladder{{After: 2, Action: budgets}, {After: 1, Action: proceed}}, "1: it is earlier than the previous rung"},
		{drain.Ladder{{Action: proceed}, {Action: budgets}}, "1: it comes after the end of the drain"},
		{drain.Ladder{{Action: budgets, Grace: 1}}, "0: its grace period is less than a second"},
		{
			drain.Ladder{{Action: budgets, Grace: s}, {Action: budgets}, {Action: force, Grace: m}},
			"2: its grace period is longer than that of an earlier rung",
		},
		{drain.Ladder{{}}, `0: the action "" is not known`},
	} {
		err := tt.ladder.Validate()
		require.Equal(t, tt.problem == "", err == nil)
		if err != nil {
			require.EqualError(t, err, "drain: rung "+tt.problem)
		}
	}
}

func TestFeasible_BeforeTheFirstWrite_NamesTheObstacles(t *testing.T) {
	after := func(e drain.Escalation) drain.Ladder { return drain.Ladder{{After: time.Hour, Action: e}} }
	never, several := []*budgetType{newBudget("web", 0)}, []*budgetType{newBudget("web", 1), newBudget("all", 1)}
	for _, tt := range []struct {
		name      string
		pod       *corev1.Pod
		budgets   []*budgetType
		ladder    drain.Ladder
		obstacles int
	}{
		{"a budget that allows nothing now", newPod("a"), []*budgetType{exhausted("web")}, nil, 0},
		{"a budget that never allows a disruption", newPod("a"), never, nil, 1},
		{"unless the ladder ignores budgets", newPod("a"), never, after(drain.IgnoreBudgets), 0},
		{"unless the ladder force-deletes pods", newPod("a"), never, after(drain.ForceDeletePods), 0},
		{"a ladder that gives up", newPod("a"), never, after(drain.GiveUp), 1},
		{"budgets that overlap", newPod("a"), several, nil, 1},
		{"an unmanaged pod", newPod("a", unmanaged), nil, after(drain.IgnoreBudgets), 1},
		{"an unmanaged pod and a ladder that proceeds", newPod("a", unmanaged), nil, after(drain.Proceed), 0},
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
	protected := []drain.Row{{Action: drain.Block, Reason: drain.ReasonDoNotDisrupt, Until: now}}
	for name, tt := range map[string]struct {
		d         drain.Decision
		feasible  bool
		obstacles int
	}{
		"nothing was observed":          {drain.Decide(drain.Observation{}, drain.Policy{}, now), false, 0},
		"a policy that is not valid":    {drain.Decide(observed(), anchored(drain.Ladder{{After: -1}}), now), false, 0},
		"a Node that was uncordoned":    {drain.Decision{Gates: []machinist.Hold{{Reason: drain.ReasonUncordoned}}}, false, 0},
		"another gate":                  {drain.Decision{Gates: []machinist.Hold{{Reason: "Other"}}}, true, 0},
		"an obstacle that expires":      {drain.Decision{Rows: protected}, true, 0},
		"a drain that was given up":     {drain.Decision{Outcome: drain.GaveUp, Rows: []drain.Row{{Action: drain.Wait}}}, false, 1},
		"a missing permission":          {drain.Decision{Rows: forbidden, Ladder: after(drain.IgnoreBudgets)}, false, 1},
		"a missing permission, Proceed": {drain.Decision{Rows: forbidden, Ladder: after(drain.Proceed)}, true, 0},
	} {
		require.Equal(t, []any{tt.feasible, tt.obstacles}, []any{tt.d.Feasible(), len(tt.d.Obstacles())}, name)
	}
}
