// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ours returns the machines of an observation that are this set's, once each and
// in the order of their names, in a slice of its own.
func ours(in Observation) ([]*v1alpha1.Machine, []machinist.Hold) {
	machines := make([]*v1alpha1.Machine, 0, len(in.Machines))
	var holds []machinist.Hold
	for _, m := range in.Machines {
		switch {
		case m == nil:
		case foreign(in.Set, m):
			holds = append(holds, machinist.Hold{Subject: m.Name, Reason: ReasonNotOurs, Message: "left out of every count"})
		default:
			machines = append(machines, m)
		}
	}
	slices.SortFunc(holds, func(a, b machinist.Hold) int { return strings.Compare(a.Subject, b.Subject) })
	return Distinct(machines), holds
}

// Distinct returns machines once each, in the order of their names and then of
// their UIDs; of two views of one machine that which is leaving is kept. None may be
// nil. It sorts and shortens the slice that it is given.
func Distinct(machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	sortByIdentity(machines)
	return slices.CompactFunc(machines, func(a, b *v1alpha1.Machine) bool {
		return a.Name == b.Name && a.UID == b.UID
	})
}

// sortByIdentity sorts machines as compareIdentity tells. A cache gives them in no
// order, and they lie far apart, so their names are brought together first.
func sortByIdentity(machines []*v1alpha1.Machine) {
	if slices.IsSortedFunc(machines, compareIdentity) {
		return
	}
	type named struct {
		name    string
		machine *v1alpha1.Machine
	}
	list := make([]named, 0, len(machines))
	for _, m := range machines {
		list = append(list, named{m.Name, m})
	}
	slices.SortFunc(list, func(a, b named) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return compareIdentity(a.machine, b.machine)
	})
	for i, n := range list {
		machines[i] = n.machine
	}
}

func foreign(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	controller := metav1.GetControllerOfNoCopy(m)
	return m.Namespace != set.Namespace || controller != nil && controller.UID != set.UID
}

// compareIdentity orders machines by name; of two views of one machine, that
// which is leaving comes first.
func compareIdentity(a, b *v1alpha1.Machine) int {
	return cmp.Or(
		strings.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
		cmp.Compare(last(!Leaving(a)), last(!Leaving(b))),
		strings.Compare(a.ResourceVersion, b.ResourceVersion),
	)
}
