// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"slices"
	"strconv"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// reference is a naive twin of the reference system's replica management. With
// no defect fixed it has to reproduce every golden vector; with all of them fixed
// it has to agree with the package. So a vector is excused exactly where a
// numbered defect shows in it.
type reference struct {
	ds23 bool // a deletion timestamp counts as on the way out
	ds26 bool // the empty phase and those of an in-place update have weights
	ds27 bool // a set that may not create still deletes
}

var fixed = reference{ds23: true, ds26: true, ds27: true}

func (r reference) leaving(m *v1alpha1.Machine) bool {
	return m.Status.CurrentStatus.Phase == "Terminating" || r.ds23 && m.DeletionTimestamp != nil
}

func (r reference) weight(m *v1alpha1.Machine) int {
	weights := map[v1alpha1.MachinePhase]int{
		"Terminating": 0, "Failed": 10, "CrashLoopBackOff": 20, "Unknown": 30,
		"Pending": 40, "Available": 50, "Running": 60,
	}
	if r.ds26 {
		weights[""], weights["InPlaceUpdating"] = 35, 45
		weights["InPlaceUpdateFailed"], weights["InPlaceUpdateSuccessful"] = 15, 60
	}
	return weights[m.Status.CurrentStatus.Phase]
}

// less reports whether a goes before b, by criteria 1 to 8 of the order.
func (r reference) less(a, b *v1alpha1.Machine) bool {
	pa, pb := a.Status.CurrentStatus.PreserveExpiryTime, b.Status.CurrentStatus.PreserveExpiryTime
	ka, kb := pa != nil && pa.After(now), pb != nil && pb.After(now)
	if ka != kb {
		return kb
	}
	if ka {
		autoA := a.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		autoB := b.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		if autoA != autoB {
			return autoA
		}
		if !pa.Equal(pb) {
			return pa.Before(pb)
		}
	}
	if x, y := referencePriority(a), referencePriority(b); x != y {
		return x < y
	}
	ma, errA := time.Parse(time.RFC3339, a.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	mb, errB := time.Parse(time.RFC3339, b.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	if (errA == nil) != (errB == nil) {
		return errA == nil
	}
	if errA == nil && !ma.Equal(mb) {
		return ma.Before(mb)
	}
	if x, y := r.weight(a), r.weight(b); x != y {
		return x < y
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

func referencePriority(m *v1alpha1.Machine) int {
	p, err := strconv.Atoi(m.Annotations["machinepriority.machine.sapcloud.io"])
	if err != nil {
		return 3
	}
	return p
}

// manage returns how many machines are created, and which are asked to be
// deleted.
func (r reference) manage(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) (int, []string) {
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
		case !r.ds27:
			return 0, nil
		}
	}
	slices.SortStableFunc(eligible, func(a, b *v1alpha1.Machine) int {
		switch {
		case r.less(a, b):
			return -1
		case r.less(b, a):
			return 1
		default:
			return 0
		}
	})
	chosen := slices.Clone(eligible[:max(0, min(len(eligible)-wanted, 100))])
	for _, m := range eligible {
		if r.marked(set, m) || r.replaced(m) {
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

func (r reference) marked(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	scaled, err := time.Parse(time.RFC3339, set.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"])
	marked, errM := time.Parse(time.RFC3339, m.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	return err == nil && errM == nil && !marked.After(scaled) && m.Annotations["machinepriority.machine.sapcloud.io"] == "1"
}

// replaced is for machines whose Node exists without annotations, or that have
// none.
func (r reference) replaced(m *v1alpha1.Machine) bool {
	if m.Status.CurrentStatus.Phase != "Failed" {
		return false
	}
	if e := m.Status.CurrentStatus.PreserveExpiryTime; e != nil {
		return e.Time.Before(now)
	}
	value := m.Annotations["node.machine.sapcloud.io/preserve"]
	if m.Annotations["node.machine.sapcloud.io/last-applied-node-preserve-value"] != "" {
		value = ""
	}
	return !slices.Contains([]string{"now", "when-failed", "auto-preserved"}, value)
}
