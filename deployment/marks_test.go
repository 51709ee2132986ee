// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

var marksNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A marksWorld is a deployment with sets, machines and Nodes, in which actions
// are carried out and sets do their work.
type marksWorld struct {
	d        *v1alpha1.MachineDeployment
	sets     []*v1alpha1.MachineSet
	machines []*v1alpha1.Machine
	nodes    map[string]*corev1.Node
	made     int
	deleted  []string // machines that sets deleted, in order
}

// newMarksWorld has a deployment of class "a" with a set for it that has this
// many Running machines.
func newMarksWorld(replicas int32) *marksWorld {
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.Namespace, d.UID, d.ResourceVersion, d.Finalizers = "w", "n", "w-uid", "1", []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	d.Spec.Template.Labels = map[string]string{"app": "w"}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "a"}
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
	}}
	w := &marksWorld{d: d, nodes: map[string]*corev1.Node{}}
	w.addSet("a", replicas)
	return w
}

// addSet adds a set for a class, with Running machines, one revision above all.
func (w *marksWorld) addSet(class string, replicas int32) *v1alpha1.MachineSet {
	d := w.d.DeepCopy()
	d.Spec.Template.Spec.Class.Name = class
	s := deployment.BuildSet(d, w.sets, replicas)
	s.Name, s.UID, s.ResourceVersion = "w-"+class, types.UID("w-"+class+"-uid"), "1"
	s.CreationTimestamp = metav1.NewTime(marksNow.Add(time.Duration(len(w.sets)) * time.Minute))
	s.Finalizers = []string{v1alpha1.MCMFinalizerName}
	w.sets = append(w.sets, s)
	for range replicas {
		w.addMachine(s)
	}
	w.report(s)
	return s
}

// addMachine adds a Running machine with a Node.
func (w *marksWorld) addMachine(s *v1alpha1.MachineSet) *v1alpha1.Machine {
	w.made++
	name := fmt.Sprintf("%s-%d", s.Name, w.made)
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace, m.UID, m.ResourceVersion = name, s.Namespace, types.UID(name+"-uid"), "1"
	m.Labels = maps.Clone(s.Spec.Template.Labels)
	m.Labels[v1alpha1.NodeLabelKey] = "node-" + name
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: s.Name, UID: s.UID, Controller: new(true)}}
	m.CreationTimestamp = metav1.NewTime(marksNow.Add(-time.Hour))
	m.Spec = *s.Spec.Template.Spec.DeepCopy()
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	w.machines = append(w.machines, m)
	n := &corev1.Node{}
	n.Name, n.UID, n.ResourceVersion = "node-"+name, types.UID("node-"+name+"-uid"), "1"
	w.nodes[n.Name] = n
	return m
}

func (w *marksWorld) of(s *v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, m := range w.machines {
		if owner := metav1.GetControllerOf(m); owner != nil && owner.UID == s.UID {
			out = append(out, m)
		}
	}
	return out
}

func (w *marksWorld) node(m *v1alpha1.Machine) *corev1.Node {
	return w.nodes[m.Labels[v1alpha1.NodeLabelKey]]
}

func (w *marksWorld) report(s *v1alpha1.MachineSet) {
	in := machineset.Observation{Set: s, Machines: w.of(s), Complete: true}
	s.Status, _ = machineset.Status(in, machineset.Failure{}, marksNow)
	s.Status.ObservedGeneration = s.Generation
}

func (w *marksWorld) in() deployment.Observation {
	return deployment.Observation{Deployment: w.d, Sets: w.sets, Machines: w.machines, Nodes: w.nodes, Complete: true}
}

func (w *marksWorld) plan(p deployment.Policy) deployment.Decision {
	return deployment.Decide(w.in(), p, marksNow)
}

// run plans once and carries everything out.
func (w *marksWorld) run(t *testing.T, p deployment.Policy) deployment.Decision {
	t.Helper()
	dec := w.plan(p)
	w.apply(t, dec, len(dec.Actions))
	return dec
}

// apply carries out the first actions of a decision, and stores the status.
func (w *marksWorld) apply(t *testing.T, dec deployment.Decision, first int) {
	t.Helper()
	for _, a := range dec.Actions[:first] {
		switch a := a.(type) {
		case deployment.WriteDeployment:
			status := w.d.Status
			w.d = a.Deployment.DeepCopy()
			w.d.Status = status
		case deployment.WriteMachine:
			i := slices.IndexFunc(w.machines, func(m *v1alpha1.Machine) bool { return m.Name == a.Machine.Name })
			w.machines[i] = marksBump(a.Machine.DeepCopy())
		case deployment.WriteNode:
			require.Equal(t, w.nodes[a.Node.Name].ResourceVersion, a.Before.ResourceVersion)
			w.nodes[a.Node.Name] = marksBump(a.Node.DeepCopy())
		case deployment.WriteSet:
			i := slices.IndexFunc(w.sets, func(s *v1alpha1.MachineSet) bool { return s.Name == a.Set.Name })
			next := marksBump(a.Set.DeepCopy())
			next.Generation++
			w.sets[i] = next
		case deployment.CreateSet:
			s := a.Set.DeepCopy()
			s.UID, s.ResourceVersion, s.Finalizers = types.UID(s.Name+"-uid"), "1", []string{v1alpha1.MCMFinalizerName}
			s.CreationTimestamp = metav1.NewTime(marksNow.Add(time.Duration(len(w.sets)) * time.Minute))
			w.sets = append(w.sets, s)
		case deployment.DeleteSet:
			w.sets = slices.DeleteFunc(w.sets, func(s *v1alpha1.MachineSet) bool { return s.Name == a.Name })
		default:
			t.Fatalf("unexpected %T", a)
		}
	}
	w.d.Status = dec.Status
}

func marksBump[T metav1.Object](object T) T {
	n, _ := strconv.Atoi(object.GetResourceVersion())
	object.SetResourceVersion(strconv.Itoa(n + 1))
	return object
}

// settle lets every set do what it has to, at once.
func (w *marksWorld) settle() {
	for _, s := range w.sets {
		for range 3 {
			dec := machineset.Decide(machineset.Observation{Set: s, Machines: w.of(s), Complete: true}, machineset.Policy{}, marksNow)
			for _, a := range dec.Actions {
				switch a := a.(type) {
				case machineset.Delete:
					w.deleted = append(w.deleted, a.Name)
					w.machines = slices.DeleteFunc(w.machines, func(m *v1alpha1.Machine) bool { return m.Name == a.Name })
				case machineset.Create:
					for range a.Count {
						w.addMachine(s)
					}
				}
			}
		}
		w.report(s)
	}
}

// rest runs deployment and sets until nothing is left to do.
func (w *marksWorld) rest(t *testing.T, p deployment.Policy) deployment.Decision {
	t.Helper()
	for range 60 {
		dec := w.run(t, p)
		w.settle()
		if len(dec.Actions) == 0 {
			return dec
		}
	}
	t.Fatal("no rest is found")
	return deployment.Decision{}
}

func marksTaint(n *corev1.Node) corev1.TaintEffect {
	for _, t := range n.Spec.Taints {
		if t.Key == v1alpha1.PreferNoScheduleKey {
			return t.Effect
		}
	}
	return ""
}
