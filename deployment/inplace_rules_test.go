// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// updScene is what one pass sees: the set "old" of class c1, the set "new" of class
// c2, and their machines.
type updScene struct {
	in deployment.Observation
}

func newUpdScene(d *v1alpha1.MachineDeployment, class string, oldSize, newSize int32) *updScene {
	d.Spec.Template = updTemplate(class)
	s := &updScene{in: deployment.Observation{Deployment: d, Complete: true, Nodes: map[string]*corev1.Node{}}}
	for i, set := range []struct {
		name, class string
		size        int32
	}{{"old", "c1", oldSize}, {"new", "c2", newSize}} {
		hash := map[string]string{"app": "w", "hash": set.class}
		ms := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: set.name, Namespace: "ns", UID: types.UID(set.name), Labels: map[string]string{"app": "w"}, Annotations: map[string]string{v1alpha1.RevisionAnnotation: fmt.Sprint(i + 1)}}}
		ms.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		ms.Spec = v1alpha1.MachineSetSpec{Replicas: set.size, Selector: &metav1.LabelSelector{MatchLabels: hash}, Template: updTemplate(set.class)}
		if set.class != class {
			ms.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		}
		s.in.Sets = append(s.in.Sets, ms)
	}
	return s
}

func (s *updScene) set(name string) *v1alpha1.MachineSet {
	if name == "old" {
		return s.in.Sets[0]
	}
	return s.in.Sets[1]
}

// machine adds one; kind is Running, candidate, selected, done or moved.
func (s *updScene) machine(set, name, kind string) {
	owner := metav1.NewControllerRef(s.set(set), v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{*owner}, Labels: map[string]string{"app": "w", v1alpha1.NodeLabelKey: name}}}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if kind != "Running" && kind != "moved" {
		n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] = "true"
	}
	switch kind {
	case "selected":
		n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true"
	case "done":
		n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = "successful"
		m.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Reason: v1alpha1.UpdateSuccessful}}
	case "moved":
		m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = "successful"
	}
	s.in.Machines = append(s.in.Machines, m)
	s.in.Nodes[name] = n
	status := &s.set(set).Status
	status.Replicas++
	status.AvailableReplicas++
}

// An updPlan is what a pass decides: the sizes, the machines that move, and the
// Nodes that are selected.
type updPlan struct {
	sizes         map[string]int32
	moves, chosen []string
	dec           deployment.Decision
}

func (s *updScene) plan() updPlan {
	var moves, chosen []string
	dec := deployment.Plan(s.in, deployment.Policy{}, time.Unix(1000, 0))
	sizes := map[string]int32{}
	for _, t := range dec.Targets {
		sizes[t.Name] = t.To
	}
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case deployment.WriteMachine:
			if machineset.Transferred(a.Machine) {
				moves = append(moves, a.Machine.Name)
			}
		case deployment.WriteNode:
			_, was := a.Before.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]
			if _, is := a.Node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]; is && !was {
				chosen = append(chosen, a.Node.Name)
			}
		}
	}
	return updPlan{sizes, moves, chosen, dec}
}

func TestInPlaceSizesFollowMachinesOnlyWhenTheSetHasSeenThemGo(t *testing.T) {
	scene := func(reported int32) *updScene {
		s := newUpdScene(updDeployment(3, "0", "1", false), "c2", 3, 0)
		s.machine("old", "m1", "candidate")
		s.machine("old", "m2", "candidate")
		s.machine("new", "m3", "moved")
		s.set("old").Status.Replicas = reported
		return s
	}
	p := scene(3).plan()
	require.Equal(t, map[string]int32{"old": 3, "new": 0}, p.sizes)
	require.Contains(t, p.dec.String(), "hold old: SetNotReported: it has reported 3 machines and has 2")
	p = scene(2).plan()
	require.Equal(t, map[string]int32{"old": 2, "new": 1}, p.sizes)
}

func TestDS8NoMoreMachinesMoveThanTheNewSetMayHave(t *testing.T) {
	s := newUpdScene(updDeployment(3, "1", "2", false), "c2", 3, 1)
	s.machine("new", "m1", "Running")
	for _, name := range []string{"m2", "m3", "m4"} {
		s.machine("old", name, "done")
	}
	p := s.plan()
	require.Equal(t, []string{"m2", "m3"}, p.moves)
	require.Equal(t, map[string]int32{"old": 3, "new": 1}, p.sizes)
}

func TestInPlaceAFinishedMachineStaysInASetThatWouldReplaceIt(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 1, 0)
	s.machine("old", "m1", "done")
	delete(s.set("old").Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	p := s.plan()
	require.Empty(t, p.moves)
	require.Contains(t, p.dec.String(), "it creates no others")
}

func TestDS4TheLabelGoesTogetherWithTheSizeOfTheMachinesThatAreLeft(t *testing.T) {
	scene := func(reported int32) *updScene {
		s := newUpdScene(updDeployment(3, "0", "1", false), "c1", 3, 1)
		s.set("old").Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		s.machine("old", "m1", "Running")
		s.machine("old", "m2", "Running")
		s.machine("new", "m3", "Running")
		s.set("old").Status.Replicas = reported
		return s
	}
	disabled := func(dec deployment.Decision) bool {
		for _, a := range dec.Actions {
			if w, ok := a.(deployment.WriteSet); ok && w.Set.Name == "old" {
				return machineset.ScaleUpDisabled(w.Set)
			}
		}
		return true
	}
	p := scene(3).plan()
	require.EqualValues(t, 3, p.sizes["old"])
	require.True(t, disabled(p.dec), "it would replace the one that left")
	p = scene(2).plan()
	require.EqualValues(t, 2, p.sizes["old"])
	require.False(t, disabled(p.dec))
}

func TestInPlaceASetIsNotCutBeforeWhatHasComeIsAcknowledged(t *testing.T) {
	s := newUpdScene(updDeployment(2, "0", "1", false), "c1", 2, 1)
	s.machine("old", "m1", "Running")
	s.machine("old", "m2", "Running")
	s.machine("new", "m3", "moved")
	p := s.plan()
	require.Equal(t, map[string]int32{"old": 2, "new": 1}, p.sizes)
}

func TestInPlaceNoMoreAreSelectedThanTheNewSetHasPlacesFor(t *testing.T) {
	s := newUpdScene(updDeployment(3, "1", "3", false), "c2", 3, 1)
	s.machine("new", "m1", "Running")
	s.machine("old", "m2", "selected")
	s.machine("old", "m3", "selected")
	s.machine("old", "m4", "candidate")
	p := s.plan()
	require.Empty(t, p.chosen)
	require.Contains(t, p.dec.String(), "2 machines are being updated in place")
}

func TestDS5ASelectedMachineIsNotAvailable(t *testing.T) {
	s := newUpdScene(updDeployment(6, "0", "2", false), "c2", 3, 3)
	for _, name := range []string{"m1", "m2", "m3"} {
		s.machine("new", name, "Running")
	}
	s.machine("old", "m4", "candidate")
	s.machine("old", "m5", "selected")
	s.machine("old", "m6", "candidate")
	p := s.plan()
	require.Equal(t, []string{"m4"}, p.chosen)
}

func BenchmarkPlanInPlace(b *testing.B) {
	for _, n := range []int{500, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newUpdScene(updDeployment(n, "0", "10%", false), "c2", int32(n), 0)
			for i := range n {
				s.machine("old", fmt.Sprintf("m%05d", i), "candidate")
			}
			b.ReportAllocs()
			for b.Loop() {
				deployment.Plan(s.in, deployment.Policy{}, time.Unix(1000, 0))
			}
		})
	}
}

func TestInPlaceAMachineDoesNotMoveToASetThatWouldNotSelectIt(t *testing.T) {
	for _, fits := range []bool{true, false} {
		s := newUpdScene(updDeployment(3, "0", "1", false), "c2", 3, 0)
		for name, kind := range map[string]string{"a": "done", "b": "Running", "c": "Running"} {
			s.machine("old", name, kind)
		}
		if !fits {
			s.set("new").Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}
		}
		p := s.plan()
		require.Equal(t, fits, slices.Equal([]string{"a"}, p.moves), p.dec.String())
	}
}
