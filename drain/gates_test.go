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
		require.Equal(t, []machinist.Hold{{Subject: "node/node-1", Reason: drain.ReasonUncordoned, Message: "the fence was taken away: fence the Node again to go on"}}, plan.Gates)
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
		require.Equal(t, "Uncordoned: the fence was taken away, and it is set again", plan.Message)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
		require.Equal(t, now, s.FencedAt, "the time of the first fence is kept")
	})
	t.Run("the end of the ladder passes it", func(t *testing.T) {
		p := anchored(drain.Ladder{{After: time.Minute, Action: drain.Proceed}})
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
