// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// owners are machines, findable by what ties a VM to one.
type owners struct {
	machines []*v1alpha1.Machine
	keys     idKeys
	byID     map[idKey]int32    // one machine of each provider ID
	byName   map[string]int32   // one machine of each name
	further  map[string][]int32 // the other machines of a name
	in       map[string]int     // machines per namespace
}

func ownersOf(machines []*v1alpha1.Machine) *owners {
	o := &owners{
		machines: machines, byID: make(map[idKey]int32, len(machines)), byName: make(map[string]int32, len(machines)),
		further: map[string][]int32{}, in: map[string]int{},
	}
	if len(machines) > 0 {
		o.keys = idKeys(schemeOf(machines[len(machines)/2].Spec.ProviderID))
	}
	namespace, n := "", 0
	for i, m := range machines {
		if id := o.keys.of(m.Spec.ProviderID); id != "" {
			o.byID[id] = int32(i)
		}
		o.byName[m.Name] = int32(i)
		if m.Namespace != namespace {
			o.in[namespace] += n
			namespace, n = m.Namespace, 0
		}
		n++
	}
	o.in[namespace] += n
	if len(o.byName) < len(machines) {
		for i, m := range machines {
			if o.byName[m.Name] != int32(i) {
				o.further[m.Name] = append(o.further[m.Name], int32(i))
			}
		}
	}
	return o
}

// named returns the machines of a name in every namespace, in a total order.
func (o *owners) named(name string) []*v1alpha1.Machine {
	i, ok := o.byName[name]
	if !ok {
		return nil
	}
	same := []*v1alpha1.Machine{o.machines[i]}
	for _, i := range o.further[name] {
		same = append(same, o.machines[i])
	}
	slices.SortFunc(same, func(a, b *v1alpha1.Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.ProviderID, b.Spec.ProviderID), cmp.Compare(a.UID, b.UID))
	})
	return same
}

// listedMachines are the machines whose VM stands in one listing.
type listedMachines struct {
	*owners
	listed []bool // by the number that byID has
	count  int
}

// mark notes that the VM with an ID is listed, and reports whether a machine has that ID.
func (l *listedMachines) mark(id idKey) bool {
	i, owned := l.byID[id]
	if owned && !l.listed[i] {
		l.listed[i] = true
		l.count++
	}
	return owned
}

// lists reports whether the VM with an ID, which a machine has, is listed.
func (l *listedMachines) lists(id idKey) bool {
	i, owned := l.byID[id]
	return owned && l.listed[i]
}

// ofClass returns how many machines of a class should be listed, and how many of them
// are not. A machine that is being deleted, and one without a provider ID, may have no VM.
func (l *listedMachines) ofClass(class types.NamespacedName) (expected, missing int) {
	for i, m := range l.machines {
		if m.Spec.Class.Name != class.Name || m.Namespace != class.Namespace || m.DeletionTimestamp != nil || m.Spec.ProviderID == "" {
			continue
		}
		expected++
		if !l.listed[i] && !l.lists(l.keys.of(m.Spec.ProviderID)) {
			missing++
		}
	}
	return expected, missing
}

// verdict is what is found of one VM: owned (the zero verdict), unowned, or in
// doubt.
type verdict struct {
	unowned machinist.Reason
	doubt   string            // what is in doubt
	owner   *v1alpha1.Machine // the machine with another VM
}

// judge returns the owner of a VM whose provider ID no machine has. Whatever speaks for
// an owner protects the VM, and the first rule that fits decides:
//
//  1. a machine of its name, in any namespace, has no provider ID: owned, for its
//     creation may be under way;
//  2. there is no machine of its name: unowned;
//  3. a machine of its name is elsewhere than the class, has an ID that differs
//     only in front, or has a VM that is not listed: in doubt;
//  4. otherwise the machine has another VM: unowned.
func (l *listedMachines) judge(vm VM, namespace string) verdict {
	same := l.named(vm.MachineName)
	for _, m := range same {
		if l.keys.of(m.Spec.ProviderID) == "" {
			return verdict{}
		}
	}
	if len(same) == 0 {
		return verdict{unowned: NoMachine}
	}
	var doubt string
	for _, m := range same {
		switch {
		case m.Namespace != namespace:
			doubt = cmp.Or(doubt, " is in another namespace")
		case nodeops.SameInstance(m.Spec.ProviderID, vm.ProviderID):
			doubt = cmp.Or(doubt, " has a provider ID that differs only in front")
		case !l.lists(l.keys.of(m.Spec.ProviderID)):
			doubt = cmp.Or(doubt, " has another VM, which is not listed")
		}
	}
	if doubt != "" {
		return verdict{doubt: doubt}
	}
	return verdict{unowned: SecondVM, owner: same[0]}
}
