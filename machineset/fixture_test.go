// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// epoch is when machines are created that say nothing else; now is the time of
// every decision that needs no other.
var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Hour)
)

// newSet returns a valid set with its finalizer.
func newSet(replicas int32) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ms", Namespace: "ns", UID: "uid-ms", Finalizers: []string{v1alpha1.MCMFinalizerName},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
			},
		},
	}
}

// newMachine returns a machine of newSet that follows its template.
func newMachine(name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	yes := true
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch),
			Labels: map[string]string{"app": "w"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{Name: "ms", UID: "uid-ms", Controller: &yes}},
		},
		Spec:   v1alpha1.MachineSpec{ProviderID: "pid-" + name, Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
		Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: phase}},
	}
}

// marked makes an autoscaler name a machine; set is to carry scaledNow.
func marked(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.Annotations[v1alpha1.MachinePriority] = "1"
	m.Annotations[v1alpha1.MarkedForDeletionTime] = at(-time.Minute)
	return m
}

func scaledNow() map[string]string {
	return map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at(0)}
}

// preserved makes a machine preserved for another hour.
func preserved(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.Status.CurrentStatus.PreserveExpiryTime = expiry(new(3600))
	return m
}

func expiry(seconds *int) *metav1.Time {
	if seconds == nil {
		return nil
	}
	return &metav1.Time{Time: now.Add(time.Duration(*seconds) * time.Second)}
}

func created(d machineset.Decision) int {
	n := 0
	for _, a := range d.Actions {
		if c, ok := a.(machinist.Create); ok {
			n += c.Count
		}
	}
	return n
}

func deletes(d machineset.Decision) []machinist.Delete {
	var list []machinist.Delete
	for _, a := range d.Actions {
		if del, ok := a.(machinist.Delete); ok {
			list = append(list, del)
		}
	}
	return list
}

func deleted(d machineset.Decision) []string {
	var names []string
	for _, del := range deletes(d) {
		names = append(names, del.Object.GetName())
	}
	return names
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func namesOf(victims []machineset.Victim) []string {
	names := []string{}
	for _, v := range victims {
		names = append(names, v.Machine.Name)
	}
	return names
}

// nodeSaying is the view of a Node with a preserve annotation; empty is one without.
func nodeSaying(value string) machine.NodeView {
	node := &corev1.Node{}
	if value != "" {
		node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: value}
	}
	return machine.NodeView{Looked: true, Node: node}
}

// named finds machines by their name.
func named(machines []*v1alpha1.Machine) func(kind, name string) metav1.Object {
	return func(_, name string) metav1.Object {
		for _, m := range machines {
			if m != nil && m.Name == name {
				return m
			}
		}
		return nil
	}
}

// victimsAnnotation is the annotation of a set that names the machines that go first.
const victimsAnnotation = "machinist.dev/delete-first"

// syncOf returns the update of a machine of a set, and whether there is one.
func syncOf(set *v1alpha1.MachineSet, m *v1alpha1.Machine) (machinist.Update, bool) {
	for _, a := range machineset.Decide(machineset.Observation{Set: set, Machines: []*v1alpha1.Machine{m}}, machineset.Policy{}, now).Actions {
		if u, ok := a.(machinist.Update); ok && u.Before == machinist.Object(m) {
			return u, true
		}
	}
	return machinist.Update{}, false
}

// machineOf returns the new machine of an update.
func machineOf(u machinist.Update) *v1alpha1.Machine { return u.Object.(*v1alpha1.Machine) }

// madeFor returns a machine with this suffix that a set creates.
func madeFor(set *v1alpha1.MachineSet, suffix string) (*v1alpha1.Machine, error) {
	d := machineset.Decide(machineset.Observation{Set: set, Complete: true, Proven: true}, machineset.Policy{}, now)
	for _, a := range d.Actions {
		if c, ok := a.(machinist.Create); ok {
			return machineset.NewMachine(c, suffix)
		}
	}
	return nil, errors.New(d.String())
}
