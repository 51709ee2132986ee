// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

type podType = corev1.Pod

func TestStepAboutTheNode(t *testing.T) {
	nameless := newNode()
	nameless.Name = ""
	pod := newPod("a")
	open := func(pods ...*corev1.Pod) drain.Observation {
		in := observed(pods...)
		in.Node = openNode()
		return in
	}
	partial := observed(pod)
	partial.Pods.Complete = false
	for _, tt := range []struct {
		name    string
		in      drain.Observation
		policy  drain.Policy
		outcome drain.Outcome
		reason  machinist.Reason
		fences  bool
		next    time.Duration // zero for none
	}{
		{"a cordoned Node without pods is drained", observed(), drain.Policy{}, drain.Drained, "", false, 0},
		{"a Node is cordoned, and is not drained before that is seen", open(), drain.Policy{}, drain.Draining, "", true, 5 * time.Second},
		{"a Node that is to stay schedulable is not cordoned, and not waited for", open(), drain.Policy{KeepSchedulable: true}, drain.Drained, "", false, 0},
		{"evictions come with the fence", open(pod), drain.Policy{}, drain.Draining, "", true, 5 * time.Second},
		{"nothing is done about pods that are not all known", partial, forcedSince(time.Hour), drain.Draining, drain.ReasonNotObserved, false, 5 * time.Second},
		{"nothing is done about a Node that nobody looked for", drain.Observation{Pods: drain.All(pod)}, forcedSince(0), drain.Draining, drain.ReasonNotObserved, false, 5 * time.Second},
		{"nothing is done about a Node without name", drain.Observation{Looked: true, Node: nameless, Pods: drain.All(pod)}, forcedSince(0), drain.Draining, drain.ReasonNotObserved, false, 5 * time.Second},
		{"a blocked drain looks again now and then", observed(newPod("a", unmanaged)), drain.Policy{}, drain.Draining, "", false, time.Minute},
		{"or at the time of force", observed(newPod("a", unmanaged)), drain.Policy{Ladder: drain.Ladder{{After: 9 * time.Second, Action: drain.IgnoreBudgets}}}, drain.Draining, "", false, 9 * time.Second},
		{"which comes before the next look", observed(pod), anchored(drain.Ladder{{After: time.Second, Action: drain.IgnoreBudgets}}), drain.Draining, "", false, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := drain.Decide(tt.in, tt.policy, now)
			var next time.Time
			if tt.next > 0 {
				next = now.Add(tt.next)
			}
			require.Equal(t, []any{tt.outcome, tt.reason, tt.fences, next}, []any{plan.Outcome, plan.Reason, plan.Fence != nil, plan.NextCheck})
			if plan.Reason != "" {
				require.Empty(t, plan.Rows)
			}
			if plan.Fence != nil {
				require.Equal(t, "node-1", plan.Fence.Node)
				require.Equal(t, types.UID("uid-node-1"), plan.Fence.UID)
				require.Equal(t, now, plan.Fence.At)
			}
		})
	}
}

// B6: the end of a ladder is the end of everything that is waited for, volumes included.
func TestB6TheEndOfALadderDoesNotWaitForVolumes(t *testing.T) {
	name := "pv-1"
	in := observed()
	in.Attachments = drain.All(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-1"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	})
	p := anchored(drain.Ladder{{After: time.Minute, Action: drain.Proceed}})
	p.Volumes.Wait = true
	s, plan := drain.Step(drain.State{}, in, p, now)
	require.Equal(t, drain.Draining, plan.Outcome)
	require.Equal(t, now.Add(time.Minute), plan.NextCheck)
	_, plan = drain.Step(s, in, p, now.Add(time.Minute))
	require.Equal(t, drain.Proceeded, plan.Outcome)
	require.Equal(t, drain.ReasonAbandoned, plan.Volumes[0].Reason)
	require.Contains(t, plan.Volumes[0].Message, "Detaching")
}

func TestStepCountsWhatHasGone(t *testing.T) {
	var s drain.State
	var plan drain.Decision
	step := func(after time.Duration, pods ...*corev1.Pod) {
		s, plan = drain.Step(s, observed(pods...), drain.Policy{}, now.Add(after))
	}
	step(0, newPod("a"), newPod("b"), newPod("c"), newPod("d", mirror))
	require.Zero(t, plan.GoneSoFar)
	require.Equal(t, now, plan.Started)
	step(time.Second, newPod("b", leaving(time.Minute, 30)), newPod("c", inPhase(corev1.PodSucceeded)))
	require.Equal(t, 2, plan.GoneSoFar, "one has gone, one has finished, and a mirror pod was not waited for")
	step(2*time.Second, newPod("b", leaving(time.Minute, 30)))
	require.Equal(t, 2, plan.GoneSoFar, "what has finished is not counted again")
	step(3*time.Second, newPod("b", func(p *corev1.Pod) { p.UID = "uid-successor" }))
	require.Equal(t, 3, plan.GoneSoFar, "a successor is another pod")
	require.Equal(t, now, plan.Started)
}

func TestStepRemembersSinceWhen(t *testing.T) {
	var s drain.State
	in := observed(newPod("a", unmanaged))
	for i := range 4 {
		var plan drain.Decision
		s, plan = drain.Step(s, in, drain.Policy{}, now.Add(time.Duration(i)*time.Minute))
		require.Equal(t, now, plan.Rows[0].Since)
		require.Equal(t, now, plan.Holds()[0].Since)
	}
	s, plan := drain.Step(s, observed(newPod("a", emptyDir)), drain.Policy{}, now.Add(time.Hour))
	require.Equal(t, now.Add(time.Hour), plan.Rows[0].Since, "another reason has another time")
	_, plan = drain.Step(s, observed(newPod("a", emptyDir)), drain.Policy{}, now)
	require.Equal(t, now, plan.Rows[0].Since, "and none is in the future")
}

func TestStepIgnoresResultsThatMeanNothing(t *testing.T) {
	in := observed(newPod("a"))
	in.Results = []drain.Result{{}, {Err: errors.New("boom")}, {Row: drain.Row{UID: "uid-a", Verdict: drain.Wait}}}
	s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
	require.Equal(t, map[types.UID]drain.PodState{"uid-a": {Reason: drain.ReasonEvict, Since: now, Waited: true}}, s.Pods)
}

// Resume after restart without redoing waits: a state that was written down is as good as one
// that was kept.
func TestStateSurvivesAsJSON(t *testing.T) {
	for seed := range uint64(300) {
		d := &dice{bytes: randomBytes(seed, 900)}
		p, in := d.policy(), d.observation()
		s, _ := drain.Step(d.state(), in, p, now)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var read drain.State
		require.NoError(t, json.Unmarshal(text, &read))
		at := now.Add(pick(d, time.Second, time.Minute, time.Hour))
		keptState, kept := drain.Step(s, in, p, at)
		readState, plan := drain.Step(read, in, p, at)
		require.Equal(t, kept, plan)
		first, err := json.Marshal(keptState)
		require.NoError(t, err)
		second, err := json.Marshal(readState)
		require.NoError(t, err)
		require.JSONEq(t, string(first), string(second))
	}
	text, err := json.Marshal(drain.State{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(text), "a drain that has not begun has nothing to remember")
}

// A State is that of one Node: a successor of the same name is neither fenced nor drained.
func TestAStateIsOfOneNode(t *testing.T) {
	p := drain.Policy{Reassert: true}
	s, _ := drain.Step(drain.State{}, observed(newPod("a")), p, now)
	in := observed(newPod("b"))
	in.Node = openNode()
	in.Node.UID = "uid-successor"
	s, plan := drain.Step(s, in, p, now.Add(time.Minute))
	require.Equal(t, drain.NodeGone, plan.Outcome)
	require.Nil(t, plan.Fence)
	require.Empty(t, plan.Rows)
	_, plan = drain.Step(s, observed(newPod("a")), p, now.Add(time.Minute))
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict, "a cache that goes back to the first one does no harm")
}

func TestANodeThatNobodyLookedForIsLeftAlone(t *testing.T) {
	in := observed(newPod("a"))
	in.Looked = false
	s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, drain.ReasonNotObserved, plan.Reason)
	require.Empty(t, plan.Rows)
	require.Zero(t, s.Started)
}

func TestAClockThatWasPutBack(t *testing.T) {
	later := now.Add(time.Hour)
	in := observed(newPod("a"))
	in.Reachability.Unreachable = true
	policy := drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}, UnreachableLadder: drain.Ladder{{Action: drain.ForceDeletePods, Grace: time.Second}}}
	s, _ := drain.Step(drain.State{}, in, policy, later)
	require.Equal(t, []time.Time{later, later, later}, []time.Time{s.FencedAt, s.UnreachableSince, s.Reached[0].At})
	s, plan := drain.Step(s, in, policy, now)
	require.Equal(t, now, s.FencedAt)
	require.Equal(t, now, plan.FencedAt)
	require.Equal(t, now, s.UnreachableSince)
	require.Equal(t, now, s.Reached[0].At)
	require.Equal(t, now, s.UnreachableReached[0].At)
}

func TestAPlanTellsSinceWhenItsFenceStands(t *testing.T) {
	s, plan := drain.Step(drain.State{}, observed(newPod("a")), drain.Policy{}, now)
	require.Equal(t, now, plan.FencedAt)
	open := observed(newPod("a"))
	open.Node = openNode()
	_, plan = drain.Step(s, open, drain.Policy{}, now)
	require.Zero(t, plan.FencedAt, "and not of one that was taken away")
	_, plan = drain.Step(s, open, drain.Policy{KeepSchedulable: true}, now)
	require.Zero(t, plan.FencedAt, "nor of one that the policy has not")
}

func TestADrainThatWasGivenUpEscalatesNoFurther(t *testing.T) {
	in := observed(newPod("a"))
	in.Reachability.Unreachable = true
	policy := drain.Policy{Ladder: drain.Ladder{{Action: drain.GiveUp}}, UnreachableLadder: drain.Ladder{{After: time.Hour, Action: drain.ForceDeletePods}}}
	plan := drain.Decide(in, policy, now)
	require.Equal(t, drain.GaveUp, plan.Outcome)
	require.Empty(t, plan.Next)
	require.Empty(t, plan.Rows[0].Next)
	require.Zero(t, plan.Rows[0].NextAt)
}

func TestResultsOfNobodyAreForgotten(t *testing.T) {
	s, _ := drain.Step(drain.State{}, drain.Observation{Results: []drain.Result{
		{Row: drain.Row{Verdict: drain.Evict}}, {Row: drain.Row{UID: "uid-a", Verdict: drain.Wait}},
	}}, drain.Policy{}, now)
	require.Empty(t, s.Answers)
}
