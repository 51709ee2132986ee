// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	sdkmachine "github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type manageReplicasIn struct {
	FailCreateFrom int
	MachineSet     machineSet
	Machines       []machine
}

type manageReplicasOut struct {
	CreateAttempts, Created    int
	Deleted, MarkedTerminating []string
	Error                      *string
}

func manageReplicas(in manageReplicasIn, out manageReplicasOut) ([]string, error) {
	set, machines := in.MachineSet.object(), machinesOf(in.Machines)
	nodes := map[string]sdkmachine.NodeView{}
	for _, m := range in.Machines {
		nodes[m.Node] = sdkmachine.NodeView{Looked: true, Node: &corev1.Node{}}
	}
	d := machineset.Decide(machineset.Observation{Set: set, Machines: machines, Complete: true, Proven: true, Nodes: nodes}, machineset.Policy{}, now)
	create, deleted := 0, []string{}
	for _, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Create:
			create += a.Count
		case machinist.Delete:
			deleted = append(deleted, a.Object.GetName())
		}
	}
	out.Error = nil // the first of the errors, which the shell has
	return explain([]string{"DS-23", "DS-26", "DS-27", named}, func(m mended) manageReplicasOut { return manageModel(in, m) }, out, in.result(create, deleted))
}

// result is what comes of so many creations, and of these deletions: those of
// machines that are on their way out already are no calls.
func (in manageReplicasIn) result(create int, deleted []string) manageReplicasOut {
	calls, successes := carryOut(machineset.Batches(create), in.FailCreateFrom)
	deleted = slices.DeleteFunc(deleted, func(name string) bool {
		return slices.ContainsFunc(in.Machines, func(m machine) bool { return m.Name == name && m.Deleting })
	})
	slices.Sort(deleted)
	return manageReplicasOut{calls, successes, deleted, deleted, nil}
}

func manageModel(in manageReplicasIn, m mended) manageReplicasOut {
	return in.result(setModel{m}.manage(in.MachineSet.object(), machinesOf(in.Machines)))
}

// named is the fault of MCM that has no number: a machine which is
// preserved and named goes beside those that are too many, and not as one of them,
// so that a scale-down by one lets two go.
const named = "named beside (I-5)"

// setModel is a naive model of MCM's replica management.
//
//	DS-23  a deletion timestamp is as good as the phase Terminating
//	DS-26  the empty phase and those of an in-place update have weights
//	DS-27  a set that may not create still deletes
//	named  machines that an autoscaler names are part of what is too much
type setModel struct{ mended mended }

func (r setModel) leaving(m *v1alpha1.Machine) bool {
	return m.Status.CurrentStatus.Phase == "Terminating" || r.mended["DS-23"] && m.DeletionTimestamp != nil
}

func (r setModel) weight(m *v1alpha1.Machine) int {
	weights := map[v1alpha1.MachinePhase]int{
		"Terminating": 0, "Failed": 10, "CrashLoopBackOff": 20, "Unknown": 30,
		"Pending": 40, "Available": 50, "Running": 60,
	}
	if r.mended["DS-26"] {
		weights[""], weights["InPlaceUpdating"] = 35, 45
		weights["InPlaceUpdateFailed"], weights["InPlaceUpdateSuccessful"] = 15, 60
	}
	if r.leaving(m) {
		return 0
	}
	return weights[m.Status.CurrentStatus.Phase]
}

// compare is the order in which machines go.
func (r setModel) compare(a, b *v1alpha1.Machine) int {
	pa, pb := a.Status.CurrentStatus.PreserveExpiryTime, b.Status.CurrentStatus.PreserveExpiryTime
	ka, kb := pa != nil && pa.After(now), pb != nil && pb.After(now)
	if ka != kb {
		return compareBool(ka, kb)
	}
	if ka {
		autoA := a.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		autoB := b.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		if n := cmp.Or(compareBool(autoB, autoA), pa.Time.Compare(pb.Time)); n != 0 {
			return n
		}
	}
	if n := cmp.Compare(priorityModel(a), priorityModel(b)); n != 0 {
		return n
	}
	ma, errA := time.Parse(time.RFC3339, a.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	mb, errB := time.Parse(time.RFC3339, b.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	if (errA == nil) != (errB == nil) {
		return compareBool(errA != nil, errB != nil)
	}
	if errA == nil && !ma.Equal(mb) {
		return ma.Compare(mb)
	}
	return cmp.Or(cmp.Compare(r.weight(a), r.weight(b)), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time))
}

// compareBool lets false go first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func priorityModel(m *v1alpha1.Machine) int {
	p, err := strconv.Atoi(m.Annotations["machinepriority.machine.sapcloud.io"])
	if err != nil {
		return 3
	}
	return p
}

// manage returns how many machines are created, and which are asked to be
// deleted.
func (r setModel) manage(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) (int, []string) {
	var staying, eligible []*v1alpha1.Machine
	for _, m := range machines {
		if r.leaving(m) {
			continue
		}
		staying = append(staying, m)
		if m.Labels["node.machine.sapcloud.io/update-result"] != "successful" {
			eligible = append(eligible, m)
		}
	}
	wanted := int(set.Spec.Replicas)
	_, disabled := set.Labels["node.machine.sapcloud.io/scale-up-disabled"]
	if len(staying) < wanted {
		switch mayCreate := set.Labels["freeze"] != "True" && !disabled; {
		case mayCreate:
			return min(wanted-len(staying), 100), nil
		case !r.mended["DS-27"]:
			return 0, nil
		}
	}
	slices.SortStableFunc(eligible, r.compare)
	if r.mended[named] {
		slices.SortStableFunc(eligible, func(a, b *v1alpha1.Machine) int { return compareBool(!markedModel(set, a), !markedModel(set, b)) })
	}
	chosen := slices.Clone(eligible[:max(0, min(len(eligible)-wanted, 100))])
	for _, m := range eligible {
		if markedModel(set, m) || replacedModel(m) {
			chosen = append(chosen, m)
		}
	}
	var names []string
	for _, m := range chosen {
		if !slices.Contains(names, m.Name) && len(names) < 100 {
			names = append(names, m.Name)
		}
	}
	return 0, names
}

func markedModel(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	scaled, err := time.Parse(time.RFC3339, set.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"])
	marked, errM := time.Parse(time.RFC3339, m.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	return err == nil && errM == nil && !marked.After(scaled) && m.Annotations["machinepriority.machine.sapcloud.io"] == "1"
}

// replacedModel is for machines whose Node exists without annotations, or that
// have none.
func replacedModel(m *v1alpha1.Machine) bool {
	in := failedMachineTerminationIn{
		MachineAnnotation:    m.Annotations["node.machine.sapcloud.io/preserve"],
		LastAppliedNodeValue: m.Annotations["node.machine.sapcloud.io/last-applied-node-preserve-value"],
		Node:                 "<nonode>",
	}
	if e := m.Status.CurrentStatus.PreserveExpiryTime; e != nil {
		in.PreserveExpiryInSeconds = new(int(e.Sub(now).Seconds()))
	}
	return m.Status.CurrentStatus.Phase == "Failed" && terminateModel(in, nil)
}
