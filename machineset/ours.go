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

// ours returns the machines of the set, each once and sorted by name, in a new slice, and holds for
// the machines of other controllers.
func ours(in Observation) ([]*v1alpha1.Machine, []machinist.Hold) {
	machines := make([]*v1alpha1.Machine, 0, len(in.Machines))
	var holds []machinist.Hold
	for _, m := range in.Machines {
		switch {
		case m == nil:
		case foreign(in.Set, m):
			holds = append(holds, machinist.Hold{Subject: machineSubject(m.Name), Reason: ReasonNotOurs, Message: "another object controls it, so it does not count"})
		default:
			machines = append(machines, m)
		}
	}
	slices.SortFunc(holds, func(a, b machinist.Hold) int { return strings.Compare(a.Subject, b.Subject) })
	return Distinct(machines), holds
}

// Distinct returns the machines sorted by name and UID, each once. Of two views of one machine it
// keeps the leaving one. No machine may be nil. It sorts and shortens its argument.
func Distinct(machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	sortByIdentity(machines)
	return slices.CompactFunc(machines, func(a, b *v1alpha1.Machine) bool {
		return a.Name == b.Name && a.UID == b.UID
	})
}

// sortByIdentity sorts machines by compareIdentity. It first copies the names into one slice,
// because the machines of a cache are far apart in memory.
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

// compareIdentity compares machines by name and UID. Of two views of one machine, the leaving one
// is first.
func compareIdentity(a, b *v1alpha1.Machine) int {
	return cmp.Or(
		strings.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
		cmp.Compare(last(!Leaving(a)), last(!Leaving(b))),
		strings.Compare(a.ResourceVersion, b.ResourceVersion),
	)
}
