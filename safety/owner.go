// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// owners are machines, findable by what ties a VM to one.
type owners struct {
	byID   map[string]bool // normalized provider IDs
	byName map[string][]*v1alpha1.Machine
	in     map[string]int // machines per namespace
}

func ownersOf(machines []*v1alpha1.Machine) owners {
	o := owners{byID: map[string]bool{}, byName: map[string][]*v1alpha1.Machine{}, in: map[string]int{}}
	for _, m := range machines {
		if id := nodeops.NormalizeProviderID(m.Spec.ProviderID); id != "" {
			o.byID[id] = true
		}
		o.byName[m.Name] = append(o.byName[m.Name], m)
		o.in[m.Namespace]++
	}
	for _, same := range o.byName {
		slices.SortFunc(same, func(a, b *v1alpha1.Machine) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.ProviderID, b.Spec.ProviderID), cmp.Compare(a.UID, b.UID))
		})
	}
	return o
}

// verdict is what is found of one VM: owned (the zero verdict), unowned, or in
// doubt.
type verdict struct {
	unowned machinist.Reason
	doubt   string            // what is in doubt
	owner   *v1alpha1.Machine // the machine with another VM
}

// judge says to whom a VM belongs; listed are the normalized IDs of its listing.
// Whatever speaks for an owner protects the VM, and the first rule that fits
// decides:
//
//  1. a machine, of any name and namespace, has its provider ID: owned;
//  2. a machine of its name, in any namespace, has no provider ID: owned, for its
//     creation may be under way;
//  3. there is no machine of its name: unowned;
//  4. a machine of its name is elsewhere than the class, has an ID that differs
//     only in front, or has a VM that is not listed: in doubt;
//  5. otherwise the machine has another VM: unowned.
func (o owners) judge(id string, vm VM, namespace string, listed map[string]VM) verdict {
	if o.byID[id] {
		return verdict{}
	}
	same := o.byName[vm.MachineName]
	for _, m := range same {
		if nodeops.NormalizeProviderID(m.Spec.ProviderID) == "" {
			return verdict{}
		}
	}
	if len(same) == 0 {
		return verdict{unowned: NoMachine}
	}
	var doubt string
	for _, m := range same {
		_, there := listed[nodeops.NormalizeProviderID(m.Spec.ProviderID)]
		switch {
		case m.Namespace != namespace:
			doubt = cmp.Or(doubt, " is in another namespace")
		case nodeops.SameInstance(m.Spec.ProviderID, vm.ProviderID):
			doubt = cmp.Or(doubt, " has a provider ID that differs only in front")
		case !there:
			doubt = cmp.Or(doubt, " has another VM, which is not listed")
		}
	}
	if doubt != "" {
		return verdict{doubt: doubt}
	}
	return verdict{unowned: SecondVM, owner: same[0]}
}
