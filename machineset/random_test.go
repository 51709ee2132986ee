// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func at(offset time.Duration) string { return now.Add(offset).Format(time.RFC3339) }

var phases = []v1alpha1.MachinePhase{
	"", "Pending", "Available", "Running", "Unknown", "Failed", "CrashLoopBackOff", "Terminating",
	"InPlaceUpdating", "InPlaceUpdateSuccessful", "InPlaceUpdateFailed", "Strange",
}

// randomMachine returns a machine on which anything may be the case.
func randomMachine(r *rand.Rand, name string) *v1alpha1.Machine {
	m := newMachine(name, pick(r, phases...))
	m.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(r.IntN(5)) * time.Minute))
	if r.IntN(6) == 0 {
		m.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	if r.IntN(4) == 0 {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Duration(r.IntN(5)-2) * time.Hour)}
	}
	if r.IntN(2) == 0 {
		m.Annotations[v1alpha1.MachinePriority] = pick(r, "1", "1", "1", "2", "-1", "x", "")
	}
	if r.IntN(3) == 0 {
		m.Annotations[v1alpha1.MarkedForDeletionTime] = pick(r, at(-time.Minute), at(-time.Hour), at(time.Minute), "x")
	}
	if r.IntN(4) == 0 {
		m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = pick(r, "now", "when-failed", "auto-preserved", "false", "junk")
	}
	if r.IntN(8) == 0 {
		m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey] = pick(r, "now", "false")
	}
	if r.IntN(2) == 0 {
		m.Labels[v1alpha1.NodeLabelKey] = "node-" + name
	}
	if r.IntN(8) == 0 {
		m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = pick(r, "successful", "failed")
	}
	if r.IntN(3) == 0 {
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Duration(r.IntN(120)) * time.Second))
	}
	if r.IntN(20) == 0 {
		m.UID = ""
	}
	if r.IntN(20) == 0 {
		m.OwnerReferences[0].UID = "uid-another"
	}
	if r.IntN(5) == 0 {
		m.Spec.Class.Kind = "Old"
		m.Spec.NodeTemplateSpec.Labels = map[string]string{"old": "yes"}
	}
	return m
}

// randomObservation returns an observation on which anything may be the case.
func randomObservation(r *rand.Rand) machineset.Observation {
	set := newSet(int32(r.IntN(8))) //nolint:gosec // small
	if r.IntN(2) == 0 {
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: pick(r, at(0), "x")}
	}
	switch r.IntN(10) {
	case 0:
		set.Labels = map[string]string{v1alpha1.FreezeLabelKey: pick(r, "True", "true")}
	case 1:
		set.Labels = map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: ""}
	case 2:
		set.Finalizers = []string{"other"}
	case 3:
		set.DeletionTimestamp = &metav1.Time{Time: epoch}
	case 4:
		set.Spec.Selector = pick(r, nil, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	}
	set.Spec.AutoPreserveFailedMachineMax = int32(r.IntN(3)) //nolint:gosec // small
	in := machineset.Observation{Set: set, Complete: r.IntN(8) > 0, Proven: true, Nodes: map[string]machine.NodeView{}}
	for i := range r.IntN(10) {
		name := fmt.Sprintf("m%d", i)
		in.Machines = append(in.Machines, randomMachine(r, name))
		if r.IntN(3) > 0 {
			in.Nodes["node-"+name] = pick(r, machine.NodeView{Looked: true}, nodeSaying(pick(r, "", "now", "false")))
		}
		if r.IntN(10) == 0 {
			in.NeverJoined = in.NeverJoined.Deleting(unjoinedDeletion(name), now.Add(-time.Duration(r.IntN(900))*time.Second))
		}
		if r.IntN(10) == 0 {
			in.Expectations = in.Expectations.Deleting(machine.KindMachine, name, types.UID("uid-"+name), now.Add(-time.Duration(r.IntN(300))*time.Second))
		}
	}
	for i := range r.IntN(3) {
		in.Expectations = in.Expectations.Creating(machine.KindMachine, fmt.Sprintf("new%d", i), now.Add(-time.Duration(r.IntN(300))*time.Second))
	}
	if r.IntN(3) == 0 {
		set.Spec.MinReadySeconds = int32(r.IntN(100)) //nolint:gosec // small
	}
	if r.IntN(3) == 0 {
		members.NameVictims(set, []string{"m3", "absent", "m1", "m0"})
	}
	for i := range max(0, r.IntN(8)-2) {
		m := randomMachine(r, fmt.Sprintf("released%d", i))
		m.OwnerReferences, m.Annotations[releasedAnnotation] = nil, "uid-ms"
		in.Released = append(in.Released, m)
	}
	return in
}

func copyOf(in machineset.Observation) machineset.Observation {
	out := in
	out.Set = in.Set.DeepCopy()
	out.Machines, out.Released = nil, nil
	for _, m := range in.Released {
		out.Released = append(out.Released, m.DeepCopy())
	}
	for _, m := range in.Machines {
		out.Machines = append(out.Machines, m.DeepCopy())
	}
	return out
}

// carryOut records what a shell records before it makes the calls.
func carryOut(f machine.Expectations, d machineset.Decision, at time.Time) machine.Expectations {
	for i, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Create:
			for j := range a.Count {
				f = f.Creating(machine.KindMachine, fmt.Sprintf("made-%d-%d-%d", at.UnixNano(), i, j), at)
			}
		case machinist.Delete:
			f = f.Deleting(machine.KindMachine, a.Object.GetName(), a.Object.(*v1alpha1.Machine).UID, at)
		}
	}
	return f
}
