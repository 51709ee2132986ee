// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// B1 pre-drain hook.
func TestB1BeforeDrain(t *testing.T) {
	in := observed(newPod("a"), newPod("b", unmanaged), newPod("c", leaving(time.Hour, 3600)), newPod("d", mirror))
	in.Node = openNode()
	in.Hooks = []drain.Hook{{Name: "etcd", Owner: "control-plane", Stage: drain.BeforeDrain, Until: now.Add(time.Minute)}}
	p := forcedSince(time.Minute)
	p.EvictUnmanaged = false
	plan := drain.Decide(in, p, now)
	require.NotNil(t, plan.Fence, "the Node is fenced before")
	const why = "hook etcd of control-plane comes before any pod is asked to go"
	require.Equal(t, []machinist.Hold{{Subject: "hook/etcd", Reason: drain.ReasonHook, Message: why, Until: now.Add(time.Minute)}}, plan.Gates)
	for _, i := range []int{0, 2} {
		row := plan.Rows[i]
		require.Equal(t, []any{drain.Wait, drain.ReasonHook, why, now.Add(time.Minute)}, []any{row.Verdict, row.Reason, row.Message, row.Until})
		require.Nil(t, row.Grace)
	}
	require.Equal(t, drain.ReasonUnmanaged, plan.Rows[1].Reason, "what is not asked anyway keeps its reason")

	t.Run("an unknown stage is before", func(t *testing.T) {
		in.Hooks[0].Stage = "WheneverItSuits"
		require.Equal(t, drain.Wait, drain.Decide(in, p, now).Rows[0].Verdict)
	})
	t.Run("its deadline passes it, visibly", func(t *testing.T) {
		plan := drain.Decide(in, p, now.Add(time.Minute))
		require.Empty(t, plan.Gates)
		require.Equal(t, drain.Delete, plan.Rows[0].Verdict)
		require.Equal(t, "hook etcd of control-plane was waited for until 2026-03-01T12:01:00Z and no longer", plan.Message)
	})
	t.Run("it is over when it is not seen any more", func(t *testing.T) {
		in.Hooks = nil
		plan := drain.Decide(in, p, now)
		require.Empty(t, plan.Gates)
		require.Equal(t, drain.Delete, plan.Rows[0].Verdict)
	})
}

// B1 pre-terminate hook.
func TestB1AfterDrain(t *testing.T) {
	in := observed(newPod("a"))
	in.Hooks = []drain.Hook{{Name: "volumes", Stage: drain.AfterDrain}}
	plan := drain.Decide(in, drain.Policy{}, now)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict, "it holds no pod")
	require.Len(t, plan.Gates, 1)
	in.Pods = drain.All[*podType]()
	plan = drain.Decide(in, drain.Policy{}, now)
	require.Equal(t, drain.Draining, plan.Outcome)
	require.Equal(t, []machinist.Hold{{Subject: "hook/volumes", Reason: drain.ReasonHook, Message: "hook volumes of nobody comes before the end of the drain"}}, plan.Holds())
	require.True(t, plan.NextCheck.After(now))
	in.Hooks = nil
	require.Equal(t, drain.Drained, drain.Decide(in, drain.Policy{}, now).Outcome)
}

// I-18: a hook ends with its deadline; the end of a ladder does not pass it before, and giving up does.
func TestHooksAndTheEndOfALadder(t *testing.T) {
	in := observed(newPod("a"))
	in.Hooks = []drain.Hook{{Name: "volumes", Stage: drain.AfterDrain, Until: now.Add(time.Minute)}}
	proceed, giveUp := anchored(drain.Ladder{{Action: drain.Proceed}}), anchored(drain.Ladder{{Action: drain.GiveUp}})
	require.Equal(t, drain.Draining, drain.Decide(in, proceed, now).Outcome)
	require.Equal(t, now.Add(time.Minute), drain.Decide(in, proceed, now).NextCheck)
	require.Equal(t, drain.Proceeded, drain.Decide(in, proceed, now.Add(time.Minute)).Outcome)
	require.Equal(t, drain.GaveUp, drain.Decide(in, giveUp, now).Outcome)
}

func TestOrderAndCopiesOfHooksDoNotMatter(t *testing.T) {
	a, b := drain.Hook{Name: "a"}, drain.Hook{Name: "b", Until: now.Add(time.Second)}
	in := observed(newPod("a"))
	in.Hooks = []drain.Hook{a, b}
	want := drain.Decide(in, drain.Policy{}, now)
	in.Hooks = []drain.Hook{b, a, b}
	require.Equal(t, want, drain.Decide(in, drain.Policy{}, now))
	require.Equal(t, "a", want.Gates[0].Subject[len("hook/"):])
}

// B1, D-12 and N-1: somebody uncordons the Node in the middle of the drain.
func TestUncordonedInMidDrain(t *testing.T) {
	in := observed(newPod("a"))
	fenced, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Nil(t, plan.Fence)
	require.Equal(t, now, fenced.FencedAt)
	in.Node = openNode()
	at := now.Add(time.Minute)

	t.Run("the drain yields and says so", func(t *testing.T) {
		_, plan := drain.Step(fenced, in, drain.Policy{}, at)
		require.Nil(t, plan.Fence)
		require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
		require.Equal(t, drain.ReasonUncordoned, plan.Rows[0].Reason)
		require.Equal(t, []machinist.Hold{{Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "somebody took the fence away: fence the Node again to go on"}}, plan.Gates)
		require.True(t, plan.NextCheck.After(at))
	})
	t.Run("it goes on when the Node is fenced again", func(t *testing.T) {
		s, _ := drain.Step(fenced, in, drain.Policy{}, at)
		_, plan := drain.Step(s, observed(newPod("a")), drain.Policy{}, at)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
		require.Empty(t, plan.Gates)
	})
	t.Run("it fences the Node again if the policy says so, and says so", func(t *testing.T) {
		s, plan := drain.Step(fenced, in, drain.Policy{Reassert: true}, at)
		require.NotNil(t, plan.Fence)
		require.Equal(t, "Uncordoned: somebody took the fence away, and it is set again", plan.Message)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
		require.Equal(t, now, s.FencedAt, "the time of the first fence is kept")
	})
	t.Run("the end of the ladder passes it", func(t *testing.T) {
		p := anchored(drain.ProceedAfter(time.Minute))
		s, _ := drain.Step(drain.State{}, observed(newPod("a")), p, now)
		_, plan := drain.Step(s, in, p, at)
		require.Equal(t, drain.Proceeded, plan.Outcome)
	})
	t.Run("a Node without pods is not drained while it is open", func(t *testing.T) {
		empty := in
		empty.Pods = drain.All[*podType]()
		_, plan := drain.Step(fenced, empty, drain.Policy{}, at)
		require.Equal(t, drain.Draining, plan.Outcome)
	})
	t.Run("a fence that the policy changed was not taken away", func(t *testing.T) {
		p := drain.Policy{Fence: nodeops.Fence{ExcludeFromLoadBalancers: true}}
		_, plan := drain.Step(fenced, in, p, at)
		require.NotNil(t, plan.Fence)
		require.Empty(t, plan.Message)
	})
	t.Run("but another reason is the same fence", func(t *testing.T) {
		_, plan := drain.Step(fenced, in, drain.Policy{Fence: nodeops.Fence{Reason: "other"}}, at)
		require.Nil(t, plan.Fence)
		require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason)
	})
	t.Run("nor one that grows since the instance went off", func(t *testing.T) {
		p := drain.Policy{Fence: nodeops.Fence{OutOfService: true}}
		s, _ := drain.Step(drain.State{}, observed(newPod("a")), p, now)
		off := observed(newPod("a"))
		off.Reachability.State = drain.PoweredOff
		_, plan := drain.Step(s, off, p, at)
		require.Empty(t, plan.Gates)
		require.Empty(t, plan.Message)
	})
	t.Run("a Node that is to stay schedulable has no fence to lose", func(t *testing.T) {
		p := drain.Policy{KeepSchedulable: true}
		s, plan := drain.Step(fenced, in, p, at)
		require.Nil(t, plan.Fence)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
		_, plan = drain.Step(s, drain.Observation{Looked: true, Node: openNode(), Pods: drain.All[*podType]()}, p, at)
		require.Equal(t, drain.Drained, plan.Outcome)
	})
	t.Run("a state that was lost fences the Node again", func(t *testing.T) {
		require.NotNil(t, drain.Decide(in, drain.Policy{}, at).Fence)
	})
	t.Run("unless the claim on the Node tells of it", func(t *testing.T) {
		p := drain.Policy{Fence: nodeops.Fence{Owner: "updater"}}
		node, _, err := p.Fence.Set(openNode(), now)
		require.NoError(t, err)
		in := observed(newPod("a"))
		in.Node = node
		require.Empty(t, drain.Decide(in, p, at).Gates)
		node.Spec.Unschedulable = false
		plan := drain.Decide(in, p, at)
		require.Nil(t, plan.Fence)
		require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason)
		p.Reassert = true
		plan = drain.Decide(in, p, at)
		require.NotNil(t, plan.Fence)
		require.Contains(t, plan.Message, "Uncordoned")
	})
}

func TestAFenceThatMakesNoSenseIsAGate(t *testing.T) {
	in := observed(newPod("a"))
	in.Node = openNode()
	p := drain.Policy{Fence: nodeops.Fence{Owner: "not an owner"}}
	plan := drain.Decide(in, p, now)
	require.Nil(t, plan.Fence)
	require.Equal(t, drain.ReasonInvalidPolicy, plan.Gates[0].Reason)
	require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
	p.KeepSchedulable = true
	require.Empty(t, drain.Decide(in, p, now).Gates, "nobody needs it then")
}

// An instance that is on again loses the taint that says it is off, or Kubernetes would
// remove its pods and detach their volumes.
func TestB4ANodeIsPutBackIntoServiceWhenItsInstanceIsOn(t *testing.T) {
	p := drain.Policy{Fence: nodeops.Fence{Owner: "drain", OutOfService: true}}
	node, _, err := p.Fence.Set(openNode(), now)
	require.NoError(t, err)
	in := observed(newPod("a"))
	in.Node, in.Reachability.State = node, drain.PoweredOff
	s, plan := drain.Step(drain.State{}, in, p, now)
	require.Nil(t, plan.Fence)

	in.Reachability.State = drain.Reachable
	s, plan = drain.Step(s, in, p, now)
	require.NotNil(t, plan.Fence)
	require.False(t, plan.Fence.Fence.OutOfService)
	require.Equal(t, "the instance is on again, and the Node is put back into service", plan.Message)
	require.Empty(t, plan.Gates, "nobody took the fence away")

	in.Node, _, err = plan.Fence.Fence.Set(node, now)
	require.NoError(t, err)
	_, plan = drain.Step(s, in, p, now)
	require.Nil(t, plan.Fence)
	require.Empty(t, plan.Message)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
}

func TestWhoseFenceWasTakenAway(t *testing.T) {
	mine := nodeops.Fence{Owner: "me"}
	in := observed(newPod("a"))
	t.Run("not that of another owner", func(t *testing.T) {
		node, _, err := nodeops.Fence{Owner: "other"}.Set(openNode(), now)
		require.NoError(t, err)
		node.Spec.Unschedulable = false
		in.Node = node
		plan := drain.Decide(in, drain.Policy{Fence: mine}, now)
		require.NotNil(t, plan.Fence)
		require.Empty(t, plan.Gates)
	})
	t.Run("not one that is to grow", func(t *testing.T) {
		node, _, err := mine.Set(openNode(), now)
		require.NoError(t, err)
		in.Node = node
		plan := drain.Decide(in, drain.Policy{Fence: nodeops.Fence{Owner: "me", ExcludeFromLoadBalancers: true}}, now)
		require.NotNil(t, plan.Fence)
		require.Empty(t, plan.Gates)
	})
	t.Run("one without owner, as the drain remembers", func(t *testing.T) {
		policy := drain.Policy{Fence: nodeops.Fence{Taint: "example.com/drain"}}
		node, _, err := policy.Fence.Set(openNode(), now)
		require.NoError(t, err)
		in.Node = node
		s, _ := drain.Step(drain.State{}, in, policy, now)
		in.Node = openNode()
		_, plan := drain.Step(s, in, policy, now)
		require.Nil(t, plan.Fence)
		require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason)
	})
	t.Run("none where the Node was to stay schedulable", func(t *testing.T) {
		in.Node = openNode()
		s, _ := drain.Step(drain.State{}, in, drain.Policy{KeepSchedulable: true}, now)
		require.Zero(t, s.FencedAt)
		_, plan := drain.Step(s, in, drain.Policy{}, now)
		require.NotNil(t, plan.Fence)
		require.Empty(t, plan.Gates)
	})
}

func TestTheFirstGateIsToldOfPods(t *testing.T) {
	in := observed(newPod("a"))
	in.Hooks = []drain.Hook{{Name: "a"}, {Name: "b", Until: now.Add(time.Minute)}}
	plan := drain.Decide(in, drain.Policy{Ladder: drain.Ladder{{After: -1, Action: drain.GiveUp}}}, now)
	require.Len(t, plan.Gates, 3)
	require.Equal(t, drain.ReasonInvalidPolicy, plan.Rows[0].Reason)
	require.Zero(t, plan.Rows[0].Until)
}
