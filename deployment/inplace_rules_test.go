// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"fmt"
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

func updDeployment(replicas int, surge, unavailable string, manual bool) *v1alpha1.MachineDeployment {
	orchestration := v1alpha1.OrchestrationTypeAuto
	if manual {
		orchestration = v1alpha1.OrchestrationTypeManual
	}
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns", UID: "d", Generation: 1, Finalizers: []string{v1alpha1.MCMFinalizerName}},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: int32(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
			Template: updTemplate("c1"),
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
				InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: new(intstr.Parse(surge)), MaxUnavailable: new(intstr.Parse(unavailable))},
					OrchestrationType:   orchestration,
				},
			},
		},
	}
}

func updTemplate(class string) v1alpha1.MachineTemplateSpec {
	return v1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
	}
}

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
