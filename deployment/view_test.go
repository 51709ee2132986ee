// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestDecide_ViewIncomplete_NothingIsDone(t *testing.T) {
	deleted := rolling(3, 1, 0)
	deleted.DeletionTimestamp = new(metav1.NewTime(rollNow))
	for _, d := range []*v1alpha1.MachineDeployment{nil, rolling(3, 1, 0), deleted, {}} {
		dec := deployment.Decide(deployment.Observation{Deployment: d}, rollPolicy, rollNow)
		require.Empty(t, dec.Actions)
		require.False(t, dec.WriteStatus)
		require.Equal(t, machinist.Reason("ViewIncomplete"), dec.Reason)
		require.Equal(t, d == nil, dec.NextCheck.IsZero(), "no change of an object tells that the view is whole")
	}
}

func TestDecide_SetOfAnotherDeployment_IsLeftAlone(t *testing.T) {
	for _, change := range []func(s *v1alpha1.MachineSet){
		func(s *v1alpha1.MachineSet) { s.OwnerReferences[0].UID = "another" },
		func(s *v1alpha1.MachineSet) { s.Namespace = "another" },
	} {
		s := newScenario("rolling 3 +1 revision=2; foreign 3/3/3; new 3/3/3")
		change(s.in.Sets[0])
		text, dec := s.result()
		require.Equal(t, "new 3", text)
		require.Equal(t, deployment.ReasonComplete, dec.Reason)
		require.Equal(t, []machinist.Reason{"ControlledByAnother"}, reasons(dec))
		s.in.Deployment.DeletionTimestamp, s.in.Sets = new(metav1.NewTime(rollNow)), s.in.Sets[:1]
		require.Empty(t, actions[machinist.Delete](s.decide()), "it is not deleted either")
	}
}

func TestDecide_ObjectsSeenTwiceOrUnderAnotherName_CountOnce(t *testing.T) {
	s := newScenario("rolling 3 +1 -1 taint; old 3/3/3; new 1/1/1")
	s.in.Sets = append(s.in.Sets, nil, s.in.Sets[0].DeepCopy())
	require.Len(t, s.decide().Targets, 2)

	twin := s.in.Machines[0].DeepCopy()
	twin.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
	s.in.Machines = append(s.in.Machines, twin)
	last := s.decide()
	slices.Reverse(s.in.Machines)
	require.Equal(t, last.String(), s.decide().String(), "of two views of a machine the leaving one counts")

	for name := range s.in.Nodes {
		s.in.Nodes[name] = &corev1.Node{}
	}
	require.Empty(t, writes[*corev1.Node](s.decide()), "a Node of another name is not known")
}

// TestExpectations_StaleView_DecidesNothingTwice asserts that a cache that lags behind decides
// nothing twice: what was written is waited for, and looked at when it takes long.
func TestExpectations_StaleView_DecidesNothingTwice(t *testing.T) {
	s := newScenario("rolling 3 +1; old 3/3/3")
	created := creates(s.decide())[0]
	created.UID, created.ResourceVersion = "created", "10"
	s.in.Expectations = machine.Expectations{}.Created(created, rollNow)
	at := func(after time.Duration) deployment.Decision {
		return deployment.Decide(s.in, s.policy, rollNow.Add(after))
	}
	again := at(29 * time.Second)
	require.Empty(t, again.Actions)
	require.Equal(t, machinist.Reason("WriteNotSeen"), again.Reason)
	require.Equal(t, rollNow.Add(30*time.Second), again.NextCheck)
	look := []machinist.Action{machinist.Refresh{Kind: machine.KindSet, Name: created.Name}}
	require.Equal(t, look, at(30*time.Second).Actions)
	require.Equal(t, look, at(-time.Hour).Actions, "the clock has gone back since")

	released := created.DeepCopy() // before the cache showed it, as its labels were taken away
	released.ResourceVersion, released.OwnerReferences, released.Labels = "12", nil, nil
	expected := s.in.Expectations
	s.in.Expectations = expected.Looked(machine.KindSet, created.Name, released, rollNow)
	require.NotEqual(t, machinist.Reason("WriteNotSeen"), at(time.Hour).Reason)
	s.in.Expectations, s.in.Sets = expected, append(s.in.Sets, created)
	require.NotEqual(t, machinist.Reason("WriteNotSeen"), at(0).Reason)
}

func TestExpectations_ManyWrites_LimitedLooks(t *testing.T) {
	s := newScenario("rolling 9 burst=4; new 9/9/9")
	for _, m := range s.in.Machines {
		m = m.DeepCopy()
		m.ResourceVersion = "99"
		s.in.Expectations = s.in.Expectations.Updated(m, rollNow.Add(-time.Hour))
	}
	require.Len(t, actions[machinist.Refresh](s.decide()), 4)
}

// TestExpectations_FutureTime_LooksAtOnce asserts that an object is not looked at
// again at the time of the last look, whatever clock recorded its write.
func TestExpectations_FutureTime_LooksAtOnce(t *testing.T) {
	s := newScenario("rolling 3 +1; new 3/3/3")
	written := s.in.Sets[0].DeepCopy()
	s.in.Sets[0].ResourceVersion, written.ResourceVersion = "5", "7"
	s.in.Expectations = machine.Expectations{}.Updated(written, rollNow.Add(time.Hour))
	require.Equal(t, []machinist.Action{machinist.Refresh{Kind: machine.KindSet, Name: "new"}}, s.decide().Actions)
	s.in.Expectations = s.in.Expectations.Looked(machine.KindSet, "new", s.in.Sets[0], rollNow)
	dec := s.decide()
	require.Empty(t, actions[machinist.Refresh](dec))
	require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(rollNow))
}

// TestDecide_Unproven_Law asserts that no set, machine or deployment is written on lists that may be
// old, and that live lists are requested instead (I-23). Nodes are corrected by the next pass, and the
// first finalizer depends on no list.
func TestDecide_Unproven_Law(t *testing.T) {
	t.Parallel()
	lists := 0
	for seed := range uint64(3000) {
		in := chance{rand.New(rand.NewPCG(seed, 9))}.observation()
		if in.Deployment == nil {
			continue
		}
		in.Proven = true
		proven := deployment.Decide(in, deployment.Policy{}, rollNow)
		in.Proven = false
		d := deployment.Decide(in, deployment.Policy{}, rollNow)
		written := slices.ContainsFunc(proven.Actions, func(a machinist.Action) bool {
			switch kind := kindOf(a); {
			case kind == "update node", strings.HasPrefix(kind, "read "):
				return false
			case kind == "update machinedeployment":
				return slices.Contains(in.Deployment.Finalizers, v1alpha1.MCMFinalizerName)
			default:
				return true
			}
		})
		if !written {
			require.Equal(t, proven, d, "seed %d", seed)
			continue
		}
		lists++
		require.Equal(t, []machinist.Action{machinist.Refresh{Kind: "MachineSet"}}, d.Actions, "seed %d: %s", seed, d)
		require.Equal(t, machinist.Reason("ViewIncomplete"), d.Reason)
		require.False(t, d.WriteStatus)
		require.NotEmpty(t, d.Holds)
		require.True(t, d.NextCheck.After(rollNow))
	}
	require.Greater(t, lists, 500)
}

var frozenSince = rollNow.Add(-time.Minute)

// freeze begins a freeze in a scene.
func freeze(s *scenario) {
	s.in.Freeze = machine.Freeze{Frozen: true, Since: frozenSince, Message: "the target API server does not answer"}
}

func TestFreeze_RolloutAndScaleUp_AreHeld(t *testing.T) {
	for _, text := range []string{
		"rolling 3 +1 -1 revision=1; old 3/3/3: a b c; new 0",
		"rolling 3 +1 -1 revision=1; old 3/3/3: a b c",
		"rolling 3 +1 -0 revision=1; old 2/2/2: a b; new 2/2/2: c d",
		"rolling 5 +1 revision=1; new 3/3/3: a b c",
		"recreate 3 revision=1; old 3/3/3: a b c; new 0",
	} {
		s := newScenario(text)
		require.NotEmpty(t, s.decide().Actions, "without a freeze something changes: %s", text)
		freeze(s)
		d := s.decide()
		for _, target := range d.Targets {
			require.Equal(t, target.From, target.To, text)
		}
		require.Empty(t, creates(d), text)
		require.Equal(t, deployment.ReasonFrozen, d.Reason, text)
		require.Contains(t, d.Holds, s.in.Freeze.Hold(rollNow))
		require.False(t, d.NextCheck.IsZero() || d.NextCheck.After(rollNow.Add(time.Minute)), text)
	}
}

func TestFreeze_ScaleDown_Continues(t *testing.T) {
	s := newScenario("rolling 1 +1 revision=1; new 3/3/3: a b c")
	freeze(s)
	d := s.decide()
	require.Len(t, d.Targets, 1)
	require.Equal(t, int32(1), d.Targets[0].To)
}

func TestFreeze_BeginAndEnd_HaveConditionAndEvent(t *testing.T) {
	s := completed()
	freeze(s)
	d := s.decide()
	require.True(t, d.WriteStatus)
	require.Len(t, d.Events, 1)
	require.Equal(t, machinist.Reason("ControllerFrozen"), d.Events[0].Reason)
	cond := deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentControllerFrozen)
	require.Equal(t, v1alpha1.ConditionTrue, cond.Status)
	require.Equal(t, v1alpha1.APIServerUnreachable, cond.Reason)
	require.Contains(t, cond.Message, "the target API server does not answer")
	require.True(t, cond.LastTransitionTime.Time.Equal(frozenSince), "it says since when")

	s.in.Deployment.Status = d.Status
	d = s.decide()
	require.False(t, d.WriteStatus, "it is said once")
	require.Empty(t, d.Events)

	s.in.Freeze = machine.Freeze{ClocksFrom: rollNow}
	d = s.decide()
	require.True(t, d.WriteStatus)
	require.Len(t, d.Events, 1)
	require.Equal(t, machinist.Reason("ControllerUnfrozen"), d.Events[0].Reason)
	require.Nil(t, deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentControllerFrozen))
	require.Equal(t, deployment.ReasonComplete, d.Reason)
}
