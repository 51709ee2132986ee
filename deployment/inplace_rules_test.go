// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
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
	require.Contains(t, p.dec.String(), "old: SetNotReported: it has reported 3 machines and has 2")
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

// afterwards puts the marks on a Node that are on it from the success of the update
// until it is given back to pods.
func (s *updScene) afterwards(name string) {
	maps.Copy(s.in.Nodes[name].Labels, map[string]string{
		v1alpha1.LabelKeyNodeCandidateForUpdate: "true", v1alpha1.LabelKeyNodeSelectedForUpdate: "true",
		v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateSuccessful,
	})
}

// names returns whom a set names after a plan, and whether machines are acknowledged.
func (p updPlan) names(set *v1alpha1.MachineSet) (names []string, acknowledged bool) {
	names = machineset.Victims(set)
	for _, a := range p.dec.Actions {
		switch a := a.(type) {
		case deployment.WriteSet:
			if a.Set.Name == set.Name {
				names = machineset.Victims(a.Set)
			}
		case deployment.WriteMachine:
			acknowledged = acknowledged || !machineset.Transferred(a.Machine)
		}
	}
	return names, acknowledged
}

// The only machine that works was updated, its Node is still marked, and all others
// are being updated. One machine less is wanted.
func TestInPlaceAnUpdatedMachineDoesNotGoAsOneOfNoUseBeforeItsNodeIsGivenBack(t *testing.T) {
	for kind, set := range map[string]string{"moved": "new", "done": "old"} {
		t.Run(kind, func(t *testing.T) {
			s := newUpdScene(updDeployment(2, "0", "1", true), "c2", 3, 0)
			s.machine(set, "m1", kind)
			s.afterwards("m1")
			s.machine("old", "m2", "selected")
			s.machine("old", "m3", "selected")
			s.in.Deployment.Spec.Paused = true // it does not move
			p := s.plan()
			for _, target := range p.dec.Targets {
				for _, v := range target.Victims {
					require.NotEqual(t, "m1", v.Machine.Name, p.dec.String())
				}
			}
			names, _ := p.names(s.set("new"))
			require.Empty(t, names, p.dec.String())
		})
	}
}

// A machine has moved to a set without a place, and is named to go. Then the others
// are of no use for a while.
func TestInPlaceANameIsWithdrawnIfTheMachineIsNeededBeforeItIsAcknowledged(t *testing.T) {
	for others, want := range map[string]string{"Running": "m1", "selected": "m2"} {
		t.Run(others, func(t *testing.T) {
			s := newUpdScene(updDeployment(2, "0", "1", true), "c2", 0, 2)
			s.machine("new", "m1", "moved")
			s.machine("new", "m2", others)
			s.machine("new", "m3", others)
			machineset.NameVictims(s.set("new"), []string{"m1"})
			p := s.plan()
			names, acknowledged := p.names(s.set("new"))
			require.Equal(t, []string{want}, names, p.dec.String())
			require.Equal(t, want == "m1", acknowledged, "only for names that were seen")
		})
	}
}

// An old set is cut in the same pass, or as soon as it has seen that a machine has
// left it.
func TestInPlaceAMachineThatHasMovedIsNotNamedInPlaceOfOneThatAnOldSetGives(t *testing.T) {
	for _, reported := range []int32{2, 3} {
		s := newUpdScene(updDeployment(2, "0", "2", false), "c2", 3, 0)
		s.machine("new", "m1", "moved")
		s.machine("old", "m2", "candidate")
		s.machine("old", "m3", "candidate")
		s.set("old").Status.Replicas = reported
		p := s.plan()
		names, acknowledged := p.names(s.set("new"))
		require.Empty(t, names, p.dec.String())
		require.False(t, acknowledged, p.dec.String())
		require.Equal(t, map[int32]int32{2: 1, 3: 3}[reported], p.sizes["old"])
	}
}

// The replicas are as many again as there are machines. The set gets no place for
// the one that has moved before the other set has seen that it left.
func TestInPlaceANameIsWithdrawnIfItsMachineIsNotTooManyAnyMore(t *testing.T) {
	s := newUpdScene(updDeployment(3, "0", "3", true), "c2", 1, 2)
	for name, kind := range map[string]string{"m1": "moved", "m2": "Running", "m3": "Running"} {
		s.machine("new", name, kind)
	}
	s.set("old").Status.Replicas = 1
	for _, key := range []string{v1alpha1.DesiredReplicasAnnotation, v1alpha1.MaxReplicasAnnotation} {
		s.set("new").Annotations[key] = "3" // it is not sized anew
	}
	machineset.NameVictims(s.set("new"), []string{"m1"})
	p := s.plan()
	names, acknowledged := p.names(s.set("new"))
	require.Empty(t, names, p.dec.String())
	require.False(t, acknowledged)
	require.EqualValues(t, 2, p.sizes["new"])
}

func TestInPlaceNothingIsSelectedBeforeTheNodesOfUpdatedMachinesAreGivenBack(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineUnknown} {
		for _, back := range []bool{false, true} {
			s := newUpdScene(updDeployment(3, "0", "1", false), "c2", 2, 1)
			s.machine("new", "m1", "moved")
			if !back {
				s.afterwards("m1")
			}
			s.machine("old", "m2", "candidate")
			s.machine("old", "m3", "candidate")
			s.in.Machines[1].Status.CurrentStatus.Phase = phase
			p := s.plan()
			require.Equal(t, back, len(p.chosen) == 1, "%s: %v: %s", phase, p.chosen, p.dec)
		}
	}
}

// BenchmarkPlanInPlaceBegins plans the pass in which no machine is marked yet.
func BenchmarkPlanInPlaceBegins(b *testing.B) {
	const sets = 10
	for _, n := range []int{500, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newUpdScene(updDeployment(n, "0", "10%", false), "c2", 0, 0)
			s.in.Sets = s.in.Sets[1:]
			for i := range sets {
				old := newUpdScene(updDeployment(n, "0", "10%", false), "c2", int32(n/sets), 0).set("old")
				name := fmt.Sprintf("o%d", i)
				old.Name, old.UID, old.Spec.Template = name, types.UID(name), updTemplate(name)
				old.Spec.Selector.MatchLabels["hash"] = name
				old.CreationTimestamp = metav1.NewTime(time.Unix(int64(i-sets), 0))
				s.in.Sets = append([]*v1alpha1.MachineSet{old}, s.in.Sets...)
				for j := range n / sets {
					s.machine("old", fmt.Sprintf("%s-%05d", name, j), "Running")
				}
			}
			require.NotEmpty(b, s.plan().dec.Actions)
			b.ReportAllocs()
			for b.Loop() {
				deployment.Plan(s.in, deployment.Policy{}, time.Unix(1000, 0))
			}
		})
	}
}
