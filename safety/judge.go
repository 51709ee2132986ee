// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// findings are the unowned VMs of one listing.
type findings struct {
	class   types.NamespacedName
	asOf    time.Time
	vms     map[string]VM // those that no machine has, by normalized provider ID
	unowned map[string]verdict
	share   share
}

// judge looks at the VMs of a listing that can be trusted, and at its side resources, and
// forgets what it disproves.
func (s *step) judge(l Listing) {
	machines := &listedMachines{owners: s.owners, listed: make([]bool, len(s.owners.machines))}
	f := findings{class: l.Class, asOf: l.VMs.AsOf, unowned: map[string]verdict{}, share: share{of: "VMs"}}
	f.vms, f.share.unowned = s.distinct(l.VMs.Items, machines)
	f.share.listed = machines.count + len(f.vms) + f.share.unowned
	for id, vm := range f.vms {
		switch v := machines.judge(vm, l.Class.Namespace); {
		case v.unowned != "":
			f.unowned[id] = v
			if v.unowned == NoMachine { // of a second VM the machine itself is the proof
				f.share.unowned++
			}
		case v.doubt != "":
			s.hold("vm "+vm.ProviderID, InDoubt, "machine "+vm.MachineName+v.doubt, s.now.Add(s.policy.Period))
			f.share.unowned++
		}
	}
	listed := func(id string) bool { return has(f.vms)(id) || machines.lists(s.owners.keys.of(id)) }
	f.share.addDeleted(s.next.deletedOf(false, l.Class.Namespace), func(id string) bool { return f.unowned[id].unowned == NoMachine }, listed)
	if h, ok := s.suspicious(l.Class, f.share, machines); ok {
		s.holds = append(s.holds, h)
		clear(f.unowned) // what such evidence shows is not remembered either
	} else {
		s.judgeSides(l)
	}
	s.next.forget(false, l.Class, listed, has(f.unowned))
	s.found = append(s.found, f)
}

// distinct returns the listed VMs that no machine has and that can be told apart, by
// normalized provider ID, and how many cannot. A machine that has the provider ID makes
// up for a bad name.
func (s *step) distinct(items []VM, machines *listedMachines) (vms map[string]VM, unclear int) {
	vms = map[string]VM{}
	names := map[string][]string{}
	until := s.now.Add(s.policy.Period)
	for _, vm := range items {
		key := s.owners.keys.of(vm.ProviderID)
		if key == "" {
			s.hold("vm of machine "+vm.MachineName, Unidentified, "no provider ID", until)
			unclear++
			continue
		}
		if machines.mark(key) {
			continue
		}
		id := nodeops.NormalizeProviderID(vm.ProviderID)
		if known, twice := vms[id]; !twice || vm.ProviderID < known.ProviderID {
			vms[id] = vm // of several spellings the same one, whatever the order
		}
		if !slices.Contains(names[id], vm.MachineName) {
			names[id] = append(names[id], vm.MachineName)
		}
	}
	for id, vm := range vms {
		var why string
		switch {
		case len(names[id]) > 1:
			why = "several names"
		case vm.MachineName == "":
			why = "no name"
		default:
			continue
		}
		s.hold("vm "+vm.ProviderID, Unidentified, why, until)
		unclear++
		delete(s.next.Seen, id)
		delete(vms, id)
	}
	return vms, unclear
}

// suspicious says whether the unowned VMs speak against the machines, or the machines
// against the listing.
func (s *step) suspicious(class types.NamespacedName, vms share, machines *listedMachines) (machinist.Hold, bool) {
	h := machinist.Hold{Subject: "class " + class.String(), Reason: Suspicious, Until: s.now.Add(s.policy.Period)}
	if vms.unowned == 0 {
		return h, false
	}
	if machines.in[class.Namespace] == 0 {
		h.Message = fmt.Sprintf("%d VMs are listed, and there is no machine in namespace %q", vms.listed, class.Namespace)
		return h, true
	}
	if vms.tooMany(s.allowed()) {
		h.Message = s.tooMany(vms)
		return h, true
	}
	expected, missing := machines.ofClass(class)
	if missing > 0 && (missing == expected || missing*100 > expected*s.policy.MaxPercent) {
		h.Message = fmt.Sprintf("the VMs of %d of the %d machines of the class are not listed", missing, expected)
		return h, true
	}
	return h, false
}
