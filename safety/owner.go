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

// owners is an index of machines by provider ID and by name.
type owners struct {
	machines []*v1alpha1.Machine
	keys     idKeys
	byID     map[idKey]int32    // one machine for each provider ID
	byName   map[string]int32   // one machine for each name
	further  map[string][]int32 // the other machines with the same name
	in       map[string]int     // number of machines by namespace
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

// named returns the machines with a name in all namespaces, sorted.
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

// listedMachines are the machines whose VM is in one listing.
type listedMachines struct {
	*owners
	listed []bool // by index of machines
	count  int
}

// mark records that the VM with an ID is listed, and reports whether a machine has that ID.
func (l *listedMachines) mark(id idKey) bool {
	i, owned := l.byID[id]
	if owned && !l.listed[i] {
		l.listed[i] = true
		l.count++
	}
	return owned
}

// lists reports whether a machine has an ID and its VM is listed.
func (l *listedMachines) lists(id idKey) bool {
	i, owned := l.byID[id]
	return owned && l.listed[i]
}

// ofClass returns the number of machines of a class with a VM, and how many of these VMs are
// not listed. Machines that are being deleted or have no provider ID do not count.
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

// ownership is whether a VM has a machine. The zero value means that it has one.
type ownership struct {
	unowned machinist.Reason  // why it has none
	doubt   string            // why it may have one
	owner   *v1alpha1.Machine // the machine with another VM
}

// judge returns the ownership of a VM whose provider ID no machine has. The first rule that
// matches decides:
//
//  1. A machine with its name, in any namespace, has no provider ID: the VM has a machine,
//     because the creation may be unfinished.
//  2. No machine has its name: the VM has no machine.
//  3. A machine with its name is in another namespace than the class, has a similar provider
//     ID, or has a VM that is not listed: the VM may have a machine.
//  4. Otherwise the machine has another VM: the VM has no machine.
func (l *listedMachines) judge(vm VM, namespace string) ownership {
	same := l.named(vm.MachineName)
	for _, m := range same {
		if l.keys.of(m.Spec.ProviderID) == "" {
			return ownership{}
		}
	}
	if len(same) == 0 {
		return ownership{unowned: noMachine}
	}
	var doubt string
	for _, m := range same {
		switch {
		case m.Namespace != namespace:
			doubt = cmp.Or(doubt, " is in another namespace")
		case nodeops.SameInstance(m.Spec.ProviderID, vm.ProviderID):
			doubt = cmp.Or(doubt, " has a provider ID that differs only in its prefix")
		case !l.lists(l.keys.of(m.Spec.ProviderID)):
			doubt = cmp.Or(doubt, " has another VM, which is not listed")
		}
	}
	if doubt != "" {
		return ownership{doubt: doubt}
	}
	return ownership{unowned: secondVM, owner: same[0]}
}
