// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type rolloutStatusOut struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas, UnavailableReplicas int32
	ObservedGeneration                                                               int64
	Conditions                                                                       []condition
	StatusWritten                                                                    bool
	Error                                                                            *string
}

// rolloutStatus compares the status that is stored afterwards, and whether it was written.
func rolloutStatus(in world, out rolloutStatusOut) ([]string, error) {
	d, newSet, old := in.MachineDeployment.object(), in.NewMS.object(), setsOf(in.OldMSs)
	s, expires := rollout.Status(d, newSet, old, now, true)
	if !expires.IsZero() && !expires.After(now) {
		return nil, fmt.Errorf("look again at %s", expires)
	}
	stored := conditionOf(d.Status, v1alpha1.MachineDeploymentProgressing)
	if stored == nil {
		stored = &v1alpha1.MachineDeploymentCondition{}
	}
	conditions := plain(s.Conditions)
	for i, c := range s.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			conditions[i].LastUpdateTime = keptOrNew(stored.LastUpdateTime.Time, c.LastUpdateTime.Time)
			conditions[i].LastTransitionTime = keptOrNew(stored.LastTransitionTime.Time, c.LastTransitionTime.Time)
		}
	}
	written := !equality.Semantic.DeepEqual(s, d.Status)
	got := rolloutStatusOut{
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.ObservedGeneration,
		conditions, written, out.Error,
	}
	// DS-40: a number that is not compared is no reason to write.
	blind := s.DeepCopy()
	blind.PreservedFailedReplicas = d.Status.PreservedFailedReplicas
	if written && !out.StatusWritten && equality.Semantic.DeepEqual(*blind, d.Status) {
		got.StatusWritten = false
		return []string{"DS-40"}, same("status", out, got)
	}
	return nil, same("status", out, got)
}

func keptOrNew(was, is time.Time) string {
	switch {
	case is.Equal(was):
		return "kept"
	case is.Equal(now):
		return "new"
	default:
		return is.String()
	}
}

type deploymentStatusOut struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas int32
	UnavailableReplicas, PreservedFailedReplicas                int32
	ObservedGeneration                                          int64
	CollisionCount                                              *int32
	Conditions                                                  []condition
	FailedMachines                                              []string
}

func machineDeploymentStatus(in world, out deploymentStatusOut) ([]string, error) {
	d, sets := in.MachineDeployment.object(), setsOf(append(slices.Clip(in.OldMSs), &machineSet{Name: "empty"}))
	if newSet := in.NewMS.object(); newSet != nil {
		newSet.Spec.Template, sets = d.Spec.Template, append(sets, newSet)
	}
	for _, s := range sets[:len(in.OldMSs)+1] {
		s.Spec.Template.Spec.Class.Name = "old"
	}
	d.Finalizers, d.DeletionTimestamp = []string{v1alpha1.MCMFinalizerName}, &metav1.Time{Time: now} // no rollout adds to the status
	before := d.DeepCopy()
	s := decide(deployment.Observation{Deployment: d, Sets: sets, Complete: true, Proven: true}).Status
	if err := same("the deployment was changed", before, d); err != nil {
		return nil, err
	}
	got := deploymentStatusOut{
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.PreservedFailedReplicas,
		s.ObservedGeneration, s.CollisionCount, plain(s.Conditions), failedNames(s.FailedMachines),
	}
	return nil, same("status", out, got)
}

func failedNames(list []*v1alpha1.MachineSummary) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

type deploymentProgressIn struct {
	Generation              int64
	NewStatus, OldStatus    status
	ProgressDeadlineSeconds *int32
	ProgressingCondition    *condition
	Replicas                int32
}

type deploymentProgressOut struct{ Complete, Progressing, TimedOut bool }

// deploymentProgress reads the three results from the status of a rollout whose sets have the new
// counters. A rollout with a pending rollback is not complete, so that it shows the other results.
func deploymentProgress(in deploymentProgressIn, out deploymentProgressOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Generation, d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = in.Generation, in.Replicas, in.ProgressDeadlineSeconds
	to := in.NewStatus.ofDeployment()
	got := deploymentProgressOut{Complete: deployment.Complete(d, to)}
	newSet, old := &v1alpha1.MachineSet{}, &v1alpha1.MachineSet{}
	newSet.Status.Replicas, old.Status.Replicas = to.UpdatedReplicas, to.Replicas-to.UpdatedReplicas
	old.Status.ReadyReplicas, old.Status.AvailableReplicas = to.ReadyReplicas, to.AvailableReplicas
	d.Spec.RollbackTo = &v1alpha1.RollbackConfig{}
	reason := func(d *v1alpha1.MachineDeployment) string {
		s, _ := rollout.Status(d, newSet, []*v1alpha1.MachineSet{old}, now, true)
		if c := conditionOf(s, v1alpha1.MachineDeploymentProgressing); c != nil {
			return c.Reason
		}
		return ""
	}
	d.Status = in.OldStatus.ofDeployment()
	got.Progressing = reason(d) == v1alpha1.MachineSetUpdated
	if c := in.ProgressingCondition; c != nil {
		c.Type = "Progressing"
		from := in.NewStatus // nothing has moved
		from.Conditions = append(from.Conditions, *c)
		d.Status = from.ofDeployment()
		// Without a deadline a condition of an earlier one stays.
		got.TimedOut = in.ProgressDeadlineSeconds != nil && reason(d) == v1alpha1.ProgressDeadlineExceeded
	}
	return nil, same("progress", out, got)
}

type machineSetStatusIn struct {
	MachineSet          machineSet
	Machines            []machine
	ManageReplicasError *string
}

type summary struct {
	Name, OwnerRef, ProviderID string
	State                      v1alpha1.MachineState
	Type                       v1alpha1.MachineOperationType
}

type machineSetStatusOut struct {
	Replicas, FullyLabeledReplicas, ReadyReplicas, AvailableReplicas int32
	PreservedFailedReplicas, AutoPreserveFailedMachineCount          int32
	Conditions                                                       []condition
	FailedMachines                                                   []summary
	FailedMachinesNil                                                bool
}

func machineSetStatus(in machineSetStatusIn, out machineSetStatusOut) ([]string, error) {
	var failure machineset.Failure
	if e := in.ManageReplicasError; e != nil {
		failure.Create = errors.New(*e)
	}
	// A machine without an owner that is claimed has one by then; in the vectors
	// it shows DS-44.
	machines := machinesOf(in.Machines)
	set := in.MachineSet.object()
	set.Spec.Template.Labels = in.MachineSet.Template.object().Labels
	s, _ := machineset.Status(machineset.Observation{Set: set, Machines: machines, Complete: true, Proven: true}, failure, now)
	got := machineSetStatusOut{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas,
		AvailableReplicas: s.AvailableReplicas, PreservedFailedReplicas: s.PreservedFailedReplicas,
		AutoPreserveFailedMachineCount: s.AutoPreserveFailedMachineCount, FailedMachinesNil: s.FailedMachines == nil, Conditions: plain(s.Conditions),
	}
	if s.FailedMachines != nil {
		for _, f := range *s.FailedMachines {
			got.FailedMachines = append(got.FailedMachines, summary{f.Name, f.OwnerRef, f.ProviderID, f.LastOperation.State, f.LastOperation.Type})
		}
	}
	byName := func(list []summary) {
		slices.SortFunc(list, func(a, b summary) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.OwnerRef, b.OwnerRef))
		})
	}
	byName(out.FailedMachines)
	byName(got.FailedMachines)
	return explain([]string{"DS-23", "DS-25", "DS-44"}, func(m mended) machineSetStatusOut {
		o := statusModel(in, m)
		byName(o.FailedMachines)
		return o
	}, out, got)
}

// statusModel counts the machines of a set.
//
//	DS-23  what is leaving is neither ready nor available
//	DS-25  a failure is called what it is, and tells the latest error
//	DS-44  the owner of a machine is its own
func statusModel(in machineSetStatusIn, m mended) machineSetStatusOut {
	o := machineSetStatusOut{Replicas: int32(len(in.Machines)), FailedMachinesNil: true}
	owner := ""
	for _, x := range in.Machines {
		labeled := true
		for k, v := range in.MachineSet.Template.object().Labels {
			labeled = labeled && x.Labels[k] == v
		}
		leaving := m["DS-23"] && (x.Deleting || x.Phase == "Terminating")
		kept := x.Phase == "Failed" && x.PreserveExpiryInSeconds != nil
		auto := x.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		o.FullyLabeledReplicas += one(labeled)
		o.ReadyReplicas += one(x.Phase == "Running" && !leaving)
		o.AvailableReplicas += one((x.Phase == "Running" || x.Phase == "Available") && !leaving)
		o.PreservedFailedReplicas += one(kept && !leaving)
		o.AutoPreserveFailedMachineCount += one(auto)
		if kept || x.LastOperationState != "Failed" {
			continue
		}
		if x.Owner != "" || m["DS-44"] {
			owner = x.Owner
		}
		o.FailedMachinesNil = false
		o.FailedMachines = append(o.FailedMachines, summary{x.Name, owner, "pid-" + x.Name, x.LastOperationState, x.LastOperationType})
	}
	o.Conditions = failureModel(in, m)
	return o
}

func failureModel(in machineSetStatusIn, m mended) []condition {
	var out []condition
	at := -1
	for i, c := range in.MachineSet.Status.Conditions {
		if c.Type == "ReplicaFailure" {
			at = i
		}
		if c.Type != "ReplicaFailure" || in.ManageReplicasError != nil {
			out = append(out, c.bare())
		}
	}
	if in.ManageReplicasError == nil {
		return out
	}
	reason := map[int]string{-1: "FailedCreate", 1: "FailedDelete"}[cmp.Compare(len(in.Machines), int(in.MachineSet.Replicas))]
	if m["DS-25"] {
		reason = "FailedCreate"
	}
	fresh := condition{Type: "ReplicaFailure", Status: "True", Reason: reason, Message: *in.ManageReplicasError}
	switch {
	case at < 0:
		out = append(out, fresh)
	case m["DS-25"]:
		out[at] = fresh
	}
	return out
}

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}
