// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// climber steps through a drain of one pod whose budget never lets it go.
type climber struct {
	t     *testing.T
	p     drain.Policy
	reach drain.NodeReachability
	state drain.State
}

// at plans at a time after now and returns what is done with the pod.
func (c *climber) at(after time.Duration) drain.Decision {
	c.t.Helper()
	in := observed(newPod("a"))
	in.Reachability = c.reach
	var plan drain.Decision
	c.state, plan = drain.Step(c.state, in, c.p, now.Add(after))
	return plan
}

func (c *climber) verdict(after time.Duration) drain.Verdict {
	c.t.Helper()
	plan := c.at(after)
	if plan.Outcome != drain.Draining {
		return drain.Verdict(plan.Outcome)
	}
	return plan.Rows[0].Verdict
}

func anchored(l drain.Ladder) drain.Policy {
	return drain.Policy{Ladder: l, EscalateFrom: now}
}

var threeRungs = drain.Ladder{
	{After: 10 * time.Minute, Action: drain.IgnoreBudgets},
	{After: 20 * time.Minute, Action: drain.ForceDeletePods},
	{After: 25 * time.Minute, Action: drain.Proceed},
}

func TestClimbing(t *testing.T) {
	const m = time.Minute
	t.Run("rungs are reached at their times", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.Evict, c.verdict(0))
		require.Equal(t, drain.Evict, c.verdict(10*m-1))
		require.Equal(t, drain.Delete, c.verdict(10*m))
		require.Equal(t, drain.ForceDelete, c.verdict(20*m))
		require.Equal(t, drain.ForceDelete, c.verdict(25*m-1))
		require.Equal(t, drain.Verdict(drain.Proceeded), c.verdict(25*m))
	})
	t.Run("what cannot be taken back waits if nobody looked", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.Delete, c.verdict(24*m))
		require.Equal(t, drain.Delete, c.verdict(34*m-1))
		require.Equal(t, drain.ForceDelete, c.verdict(34*m))
		require.Equal(t, drain.ForceDelete, c.verdict(39*m-1))
		require.Equal(t, drain.Verdict(drain.Proceeded), c.verdict(39*m))
	})
	t.Run("what is polite does not", func(t *testing.T) {
		c := climber{t: t, p: anchored(drain.Ladder{{After: m, Action: drain.IgnoreBudgets, Grace: 20 * time.Second}, {After: 2 * m, Action: drain.IgnoreBudgets, Grace: time.Second}})}
		plan := c.at(3 * m)
		require.Len(t, plan.Rungs, 2)
	})
	t.Run("an end comes a second after the rung below it at the earliest", func(t *testing.T) {
		c := climber{t: t, p: anchored(drain.Ladder{{After: m, Action: drain.IgnoreBudgets}, {After: m, Action: drain.Proceed}})}
		require.Equal(t, drain.Delete, c.verdict(time.Hour), "what it allows is tried")
		require.Equal(t, drain.Verdict(drain.Proceeded), c.verdict(time.Hour+time.Second))
	})
	t.Run("an end that is alone comes at its time", func(t *testing.T) {
		c := climber{t: t, p: anchored(drain.Ladder{{After: m, Action: drain.Proceed}})}
		require.Equal(t, drain.Verdict(drain.Proceeded), c.verdict(time.Hour))
	})
	t.Run("a state that is lost costs time, never safety", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.ForceDelete, func() drain.Verdict { c.verdict(10 * m); return c.verdict(20 * m) }())
		c.state = drain.State{}
		require.Equal(t, drain.Delete, c.verdict(21*m))
		require.Equal(t, drain.ForceDelete, c.verdict(31*m))
	})
	t.Run("a clock that jumps back takes escalation back", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.Delete, c.verdict(15*m))
		require.Equal(t, drain.Evict, c.verdict(0))
		require.Equal(t, drain.Delete, c.verdict(10*m))
		require.Equal(t, drain.ForceDelete, c.verdict(20*m))
	})
	t.Run("a drain without anchor that began in the future begins now", func(t *testing.T) {
		c := climber{t: t, p: drain.Policy{Ladder: threeRungs}}
		require.Equal(t, drain.Evict, c.verdict(time.Hour))
		require.Equal(t, drain.Evict, c.verdict(0))
		require.Equal(t, drain.Delete, c.verdict(10*m), "the hour is not waited for")
	})
	t.Run("a policy that is changed counts at once", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.Delete, c.verdict(12*m))
		c.p.Ladder = drain.Ladder{{After: 5 * m, Action: drain.IgnoreBudgets}, {After: 15 * m, Action: drain.Proceed}}
		require.Equal(t, drain.Delete, c.verdict(13*m), "budgets have been ignored since 12 minutes")
		require.Equal(t, now.Add(22*m), c.at(13*m).NextAt, "so the end comes ten minutes after that")
		c.p.Ladder = nil
		require.Equal(t, drain.Evict, c.verdict(30*m), "and goes back if that is what it says")
	})
	t.Run("an anchor that comes closer counts at once", func(t *testing.T) {
		c := climber{t: t, p: anchored(threeRungs)}
		require.Equal(t, drain.Evict, c.verdict(m))
		c.p.EscalateFrom = now.Add(-10 * m)
		require.Equal(t, drain.Delete, c.verdict(m))
	})
}

func TestUnreachableLadderIsCountedFromTheCondition(t *testing.T) {
	const m = time.Minute
	p := drain.Policy{UnreachableLadder: drain.Ladder{{After: 5 * m, Action: drain.ForceDeletePods}}}
	c := climber{t: t, p: p, reach: drain.NodeReachability{Unreachable: true, Since: now.Add(-4 * m)}}
	require.Equal(t, drain.Evict, c.verdict(0))
	require.Equal(t, now.Add(m), c.at(0).NextAt)
	require.Equal(t, drain.ForceDelete, c.verdict(m))
	c.reach = drain.NodeReachability{}
	require.Equal(t, drain.Evict, c.verdict(2*m), "a Node that is back is drained as usual")
	require.Empty(t, c.state.UnreachableReached)
	c.reach = drain.NodeReachability{Unreachable: true, Since: now.Add(time.Hour)}
	require.Equal(t, drain.Evict, c.verdict(3*m))
	require.Equal(t, drain.ForceDelete, c.verdict(8*m), "another clock's future is not waited for")
}

func TestNextIsTheRungToCome(t *testing.T) {
	c := climber{t: t, p: anchored(threeRungs)}
	for after, want := range map[time.Duration]drain.Escalation{
		0: drain.IgnoreBudgets, 10 * time.Minute: drain.ForceDeletePods,
	} {
		c.state = drain.State{}
		plan := c.at(after)
		require.Equal(t, want, plan.Next)
		require.Equal(t, now.Add(after+10*time.Minute), plan.NextAt)
		require.Equal(t, want, plan.Rows[0].Next)
		require.Equal(t, plan.NextAt, plan.Rows[0].NextAt)
	}
}

func TestAnInvalidLadderForcesNothing(t *testing.T) {
	broken := drain.Ladder{{Action: drain.ForceDeletePods}, {Action: "Pray"}}
	for name, p := range map[string]drain.Policy{
		"the ladder":                {Ladder: broken},
		"that of unreachable Nodes": {UnreachableLadder: broken},
	} {
		t.Run(name, func(t *testing.T) {
			in := observed(newPod("a"))
			in.Node, in.Reachability.Unreachable = openNode(), true
			plan := drain.Decide(in, p, now)
			require.Nil(t, plan.Fence, "a policy that contradicts itself does nothing")
			require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
			require.Equal(t, drain.ReasonInvalidPolicy, plan.Rows[0].Reason)
			require.Equal(t, []machinist.Hold{{Subject: "policy", Reason: drain.ReasonInvalidPolicy, Message: `drain: rung 1: the action "Pray" is not known`}}, plan.Gates)
			require.True(t, plan.NextCheck.After(now))
			require.Equal(t, drain.Draining, drain.Decide(observed(), p, now).Outcome, "and it is never done")
		})
	}
}

func TestRungsOfTwoLadders(t *testing.T) {
	in := func(pod *podType) drain.Observation {
		in := observed(pod)
		in.Reachability.Unreachable = true
		return in
	}
	t.Run("the shortest grace counts, whichever ladder has it", func(t *testing.T) {
		short, long := drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 2 * time.Second}}, drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 20 * time.Second}}
		for _, policy := range []drain.Policy{{Ladder: short, UnreachableLadder: long}, {Ladder: long, UnreachableLadder: short}} {
			require.Equal(t, int64(2), *drain.Decide(in(newPod("a")), policy, now).Rows[0].Grace)
		}
	})
	t.Run("a milder rung takes nothing back", func(t *testing.T) {
		policy := drain.Policy{Ladder: drain.Ladder{{Action: drain.ForceDeletePods}}, UnreachableLadder: drain.Ladder{{Action: drain.IgnoreBudgets}}}
		require.Equal(t, drain.ForceDelete, drain.Decide(in(newPod("a")), policy, now).Rows[0].Verdict)
	})
	t.Run("a rung that is new is acted on at once, though others are known", func(t *testing.T) {
		policy := drain.Policy{Ladder: drain.Ladder{{After: time.Second, Action: drain.IgnoreBudgets, Grace: time.Second}}, UnreachableLadder: drain.Ladder{{Action: drain.IgnoreBudgets}}}
		s, plan := drain.Step(drain.State{}, in(newPod("a")), policy, now)
		seen := in(newPod("a"))
		seen.Results = []drain.Result{{Row: plan.Rows[0]}}
		_, plan = drain.Step(s, seen, policy, now.Add(time.Second))
		require.Equal(t, drain.Delete, plan.Rows[0].Verdict)
		require.Equal(t, int64(1), *plan.Rows[0].Grace)
	})
}

func TestOfTwoRungsAtOneTimeThatOfTheFirstLadderIsNext(t *testing.T) {
	in := observed(newPod("a"))
	in.Reachability.Unreachable = true
	policy := drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets}}, UnreachableLadder: drain.Ladder{{After: time.Hour, Action: drain.ForceDeletePods}}}
	require.Equal(t, drain.IgnoreBudgets, drain.Decide(in, policy, now).Next)
}
