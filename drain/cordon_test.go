// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// onOpenNode is an observation of a schedulable Node.
func onOpenNode(pods ...*corev1.Pod) drain.Observation {
	in := observed(pods...)
	in.Node = openNode()
	return in
}

func TestDecide_StateOfTheNode_OutcomeAndNextCheck(t *testing.T) {
	const s = time.Second
	pod, lonely := newPod("a"), newPod("a", unmanaged)
	nameless, partial := observed(pod), observed(pod)
	nameless.Node.Name, partial.Pods.Complete = "", false
	soon := drain.Policy{Ladder: drain.Ladder{{After: 9 * s, Action: drain.IgnoreBudgets}}}
	for _, tt := range []struct {
		name    string
		in      drain.Observation
		policy  drain.Policy
		outcome drain.Outcome
		reason  machinist.Reason
		cordons bool
		next    time.Duration // zero for none
	}{
		{"an open Node without pods", onOpenNode(), drain.Policy{}, drain.Draining, "", true, 5 * s},
		{"a Node that stays schedulable", onOpenNode(), drain.Policy{KeepSchedulable: true}, drain.Drained, "", false, 0},
		{"an incomplete list of pods", partial, forcedSince(0), drain.Draining, drain.ReasonNotObserved, false, 5 * s},
		{"a Node that was not read", drain.Observation{Pods: drain.All(pod)}, forcedSince(0), drain.Draining, drain.ReasonNotObserved, false, 5 * s},
		{"a Node without name", nameless, forcedSince(0), drain.Draining, drain.ReasonNotObserved, false, 5 * s},
		{"a blocked drain decides again after a minute", observed(lonely), drain.Policy{}, drain.Draining, "", false, time.Minute},
		{"at the time of the rung", observed(lonely), soon, drain.Draining, "", false, 9 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := drain.Decide(tt.in, tt.policy, now)
			require.Equal(t, []any{tt.outcome, tt.reason, tt.next}, []any{d.Outcome, d.Reason, max(0, d.NextCheck.Sub(now))})
			require.True(t, d.Reason == "" || len(d.Rows) == 0)
			var set *drain.SetCordon
			if tt.cordons {
				set = &drain.SetCordon{Node: "node-1", UID: "uid-node-1", At: now}
			}
			require.Equal(t, set, d.Cordon)
		})
	}
}

// TestStep_Uncordoned_WaitsUnlessThePolicyReasserts uncordons the Node during the drain. The texts are in ends.golden.
func TestStep_Uncordoned_WaitsUnlessThePolicyReasserts(t *testing.T) {
	cordoned, d := drain.Step(drain.State{}, observed(newPod("a")), drain.Policy{}, now)
	require.Nil(t, d.Cordon)
	require.Equal(t, []time.Time{now, now}, []time.Time{cordoned.CordonedAt, d.CordonedAt})
	at := now.Add(time.Minute)
	for _, tt := range []struct {
		name        string
		in          drain.Observation
		policy      drain.Policy
		sets, gated bool
		want        string
	}{
		{"another reason is the same cordon", onOpenNode(newPod("a")), drain.Policy{Cordon: nodeops.Cordon{Reason: "other"}}, false, true, "a wait Uncordoned"},
		{"the Node is cordoned again", observed(newPod("a")), drain.Policy{}, false, false, "a evict Evictable"},
		{"the policy changed the cordon", onOpenNode(newPod("a")), drain.Policy{Cordon: nodeops.Cordon{ExcludeFromLoadBalancers: true}}, true, false, "a evict Evictable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, d := drain.Step(cordoned, tt.in, tt.policy, at)
			require.Equal(t, []any{tt.sets, tt.gated}, []any{d.Cordon != nil, len(d.Gates) > 0})
			require.Equal(t, []any{tt.want, drain.Draining}, []any{rows(d), d.Outcome})
			require.Equal(t, now, s.CordonedAt, "the time of the first cordon is kept")
			require.Equal(t, tt.in.Node.Spec.Unschedulable, !d.CordonedAt.IsZero())
		})
	}
	p := anchored(drain.Ladder{{After: time.Minute, Action: drain.Proceed}})
	_, d = drain.Step(cordoned, onOpenNode(newPod("a")), p, at)
	require.Equal(t, []any{drain.Proceeded, time.Time{}}, []any{d.Outcome, d.CordonedAt}, "the ladder ends the drain")
}

func TestDecide_InvalidPolicy_IsAGate(t *testing.T) {
	broken := drain.Ladder{{Action: drain.ForceDeletePods}, {Action: "Pray"}}
	const rung = `drain: rung 1: the action "Pray" is not known`
	for message, p := range map[string]drain.Policy{
		rung: {Ladder: broken}, rung + " ": {UnreachableLadder: broken},
		"cordon": {Cordon: nodeops.Cordon{Owner: "not an owner"}}, "pod selector": {PodSelector: "!!"},
	} {
		in := onOpenNode(newPod("a"))
		in.Reachability.Unreachable = true
		d := drain.Decide(in, p, now)
		require.Nil(t, d.Cordon)
		require.Equal(t, "a wait InvalidPolicy", rows(d))
		require.Len(t, d.Gates, 1)
		require.Contains(t, d.Gates[0].Message+" ", message)
		require.Equal(t, drain.Draining, drain.Decide(observed(), p, now).Outcome, "the drain does not end")
	}
	keeps := drain.Policy{Cordon: nodeops.Cordon{Owner: "not an owner"}, KeepSchedulable: true}
	require.Empty(t, drain.Decide(onOpenNode(newPod("a")), keeps, now).Gates, "without a cordon its owner is not validated")
}

func TestStep_CordonOfAnOwnerIsRemoved_IsDetected(t *testing.T) {
	set := func(cordon nodeops.Cordon) *corev1.Node {
		node, _, err := cordon.Set(openNode(), now)
		require.NoError(t, err)
		return node
	}
	opened := func(node *corev1.Node) *corev1.Node {
		node.Spec.Unschedulable = false
		return node
	}
	mine, taint := nodeops.Cordon{Owner: "me"}, nodeops.Cordon{Taint: "example.com/drain"}
	for name, tt := range map[string]struct {
		first, node *corev1.Node
		before      drain.Policy
		policy      drain.Policy
		removed     bool
	}{
		"own cordon":                     {nil, opened(set(mine)), drain.Policy{}, drain.Policy{Cordon: mine}, true},
		"the cordon of another owner":    {nil, opened(set(nodeops.Cordon{Owner: "other"})), drain.Policy{}, drain.Policy{Cordon: mine}, false},
		"the policy adds to the cordon":  {nil, set(mine), drain.Policy{}, drain.Policy{Cordon: nodeops.Cordon{Owner: "me", ExcludeFromLoadBalancers: true}}, false},
		"a cordon without owner":         {set(taint), openNode(), drain.Policy{Cordon: taint}, drain.Policy{Cordon: taint}, true},
		"no cordon in the policy before": {openNode(), openNode(), drain.Policy{KeepSchedulable: true}, drain.Policy{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := observed(newPod("a"))
			var s drain.State
			if in.Node = tt.first; tt.first != nil {
				s, _ = drain.Step(s, in, tt.before, now)
			}
			in.Node = tt.node
			_, d := drain.Step(s, in, tt.policy, now)
			require.Equal(t, []any{tt.removed, !tt.removed}, []any{len(d.Gates) == 1, d.Cordon != nil})
		})
	}
}

// TestStep_NodeOlderThanTheCordon_CountsAsCordoned asserts that a version of the Node from before
// the cordon does not count as uncordoned. A later version does.
func TestStep_NodeOlderThanTheCordon_CountsAsCordoned(t *testing.T) {
	past := drain.State{NodeUID: "uid-node-1", Started: now, CordonedAt: now, CordonedVersion: "100"}
	in := onOpenNode(newPod("a"))
	in.Node.ResourceVersion = "99"
	_, d := drain.Step(past, in, drain.Policy{}, now)
	require.Nil(t, d.Cordon)
	require.Equal(t, "a evict Evictable", rows(d))
	_, d = drain.Step(past, in, drain.Policy{Cordon: nodeops.Cordon{ExcludeFromLoadBalancers: true}}, now)
	require.NotNil(t, d.Cordon, "the policy has another cordon")
	in.Node.ResourceVersion = "101"
	_, d = drain.Step(past, in, drain.Policy{}, now)
	require.Equal(t, "a wait Uncordoned", rows(d))
}

// TestStep_NodeIsReplaced_IsGone asserts that a State is that of one Node: a successor of the same
// name is neither cordoned nor drained.
func TestStep_NodeIsReplaced_IsGone(t *testing.T) {
	p := drain.Policy{Reassert: true}
	s, _ := drain.Step(drain.State{}, observed(newPod("a")), p, now)
	in := onOpenNode(newPod("b"))
	in.Node.UID = "uid-successor"
	s, d := drain.Step(s, in, p, now.Add(time.Minute))
	require.Equal(t, drain.NodeGone, d.Outcome)
	require.Nil(t, d.Cordon)
	require.Empty(t, d.Rows)
	_, d = drain.Step(s, observed(newPod("a")), p, now.Add(time.Minute))
	require.Equal(t, "a evict Evictable", rows(d), "an older cache shows the first Node again")
}

func TestStep_PodsAreGone_AreCounted(t *testing.T) {
	var s drain.State
	for i, tt := range []struct {
		pods []*corev1.Pod
		gone int
	}{
		{[]*corev1.Pod{newPod("a"), newPod("b"), newPod("c"), newPod("d", mirror)}, 0},
		{[]*corev1.Pod{newPod("b", terminating(time.Minute, 30)), newPod("c", inPhase(corev1.PodSucceeded))}, 2},
		{[]*corev1.Pod{newPod("b", terminating(time.Minute, 30))}, 2}, // a finished pod is counted once
		{[]*corev1.Pod{newPod("b", func(p *corev1.Pod) { p.UID = "uid-successor" })}, 3},
	} {
		var d drain.Decision
		s, d = drain.Step(s, observed(tt.pods...), drain.Policy{}, now.Add(time.Duration(i)*time.Second))
		require.Equal(t, []any{tt.gone, now}, []any{d.GoneSoFar, d.Started})
	}
}

func TestStep_OtherReason_HasItsOwnTime(t *testing.T) {
	s, _ := drain.Step(drain.State{}, observed(newPod("a", unmanaged)), drain.Policy{}, now)
	s, d := drain.Step(s, observed(newPod("a", emptyDir)), drain.Policy{}, now.Add(time.Hour))
	require.Equal(t, now.Add(time.Hour), d.Rows[0].Since, "another reason has another time")
	_, d = drain.Step(s, observed(newPod("a", emptyDir)), drain.Policy{}, now)
	require.Equal(t, now, d.Rows[0].Since, "no time is in the future")
}

// TestStep_StateAsJSON_DecidesTheSame asserts that a state that was encoded and decoded leads to
// the same decisions.
func TestStep_StateAsJSON_DecidesTheSame(t *testing.T) {
	for seed := range uint64(300) {
		d := &dice{bytes: randomBytes(seed, 900)}
		p, in := d.policy(), d.observation()
		s, _ := drain.Step(d.state(), in, p, now)
		var read []drain.State
		require.NoError(t, json.Unmarshal([]byte(asJSON(t, s)), &read))
		at := now.Add(pick(d, time.Second, time.Minute, time.Hour))
		keptState, kept := drain.Step(s, in, p, at)
		readState, again := drain.Step(read[0], in, p, at)
		require.Equal(t, kept, again)
		require.JSONEq(t, asJSON(t, keptState), asJSON(t, readState))
	}
	require.Equal(t, "[{}]", asJSON(t, drain.State{}), "the zero State has no fields")
}

func TestStep_ClockIsSetBack_TimesRestart(t *testing.T) {
	in := observed(newPod("a"))
	in.Reachability.Unreachable = true
	policy := drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}, UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods, Grace: time.Second}}}
	var s drain.State
	for _, at := range []time.Time{now.Add(time.Hour), now} {
		s, _ = drain.Step(s, in, policy, at)
		require.Equal(t, []time.Time{at, at, at, at}, []time.Time{s.CordonedAt, s.UnreachableSince, s.Reached[0].At, s.UnreachableReached[0].At})
	}
}

func TestStep_ResultsOfNoRequest_DoNoHarm(t *testing.T) {
	in := observed(newPod("a"))
	for _, row := range []drain.Row{{}, {UID: "uid-a"}, {UID: "uid-a", Action: drain.Wait}, {UID: "uid-a", Action: "dance"}, {UID: "uid-b", Action: drain.Evict}, {Action: drain.Evict}} {
		in.Results = []drain.Result{{Row: row, Err: errors.New("boom"), At: now.Add(time.Hour)}}
		s, d := drain.Step(drain.State{}, in, drain.Policy{}, now)
		require.Equal(t, "a evict Evictable", rows(d))
		require.Equal(t, map[types.UID]drain.PodState{"uid-a": {Reason: drain.ReasonEvict, Since: now, Waited: true}}, s.Pods)
		require.Empty(t, s.Responses)
		require.Zero(t, s.Gone)
		s, _ = drain.Step(drain.State{}, drain.Observation{Results: in.Results}, drain.Policy{}, now)
		require.Equal(t, row.UID == "uid-b", len(s.Responses) == 1, "an incomplete observation drops no response")
	}
}
