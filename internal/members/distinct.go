// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
