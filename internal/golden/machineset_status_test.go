// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

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
		AutoPreserveFailedMachineCount: s.AutoPreserveFailedMachineCount, FailedMachinesNil: s.FailedMachines == nil,
	}
	for _, c := range s.Conditions {
		got.Conditions = append(got.Conditions, condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message})
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
			out = append(out, condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
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
