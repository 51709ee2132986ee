// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// findings are the VMs without a machine in one listing.
type findings struct {
	class   types.NamespacedName
	asOf    time.Time
	vms     map[string]VM // no machine has their provider ID; by normalized provider ID
	unowned map[string]ownership
	share   share
}

// judge finds the VMs and side resources without an owner in a usable listing, and deletes
// the records that it disproves.
func (s *step) judge(l Listing) {
	machines := &listedMachines{owners: s.owners, listed: make([]bool, len(s.owners.machines))}
	f := findings{class: l.Class, asOf: l.VMs.AsOf, unowned: map[string]ownership{}, share: share{of: "VMs"}}
	f.vms, f.share.unowned = s.distinct(l.VMs.Items, machines)
	f.share.listed = machines.count + len(f.vms) + f.share.unowned
	for id, vm := range f.vms {
		switch v := machines.judge(vm, l.Class.Namespace); {
		case v.unowned != "":
			f.unowned[id] = v
			if v.unowned == noMachine { // the machine of a second VM exists
				f.share.unowned++
			}
		case v.doubt != "":
			s.hold("vm/"+vm.ProviderID, inDoubt, "machine "+vm.MachineName+v.doubt, s.now.Add(s.policy.Period))
			f.share.unowned++
		}
	}
	listed := func(id string) bool { return has(f.vms)(id) || machines.lists(s.owners.keys.of(id)) }
	f.share.addDeleted(s.next.deletedOf(false, l.Class.Namespace), func(id string) bool { return f.unowned[id].unowned == noMachine }, listed)
	delete(s.next.Held, l.Class.String())
	if why := s.suspicious(l.Class, f.share, machines); why != "" {
		s.holdClass(l.Class, f.share, why)
		clear(f.unowned) // a suspicious listing is not recorded either
	} else {
		s.judgeSides(l)
	}
	s.next.forget(false, l.Class, listed, has(f.unowned))
	s.found = append(s.found, f)
}

// distinct returns the listed VMs without a machine that have a provider ID and one machine
// name, by normalized provider ID. unclear is the number of the others. A VM whose provider
// ID a machine has needs no name.
func (s *step) distinct(items []VM, machines *listedMachines) (vms map[string]VM, unclear int) {
	vms = map[string]VM{}
	names := map[string][]string{}
	until := s.now.Add(s.policy.Period)
	for _, vm := range items {
		key := s.owners.keys.of(vm.ProviderID)
		if key == "" {
			s.hold("vm/", unidentified, fmt.Sprintf("the VM of machine %q has no provider ID", vm.MachineName), until)
			unclear++
			continue
		}
		if machines.mark(key) {
			continue
		}
		id := nodeops.NormalizeProviderID(vm.ProviderID)
		if known, twice := vms[id]; !twice || vm.ProviderID < known.ProviderID {
			vms[id] = vm // the smallest of several spellings
		}
		if !slices.Contains(names[id], vm.MachineName) {
			names[id] = append(names[id], vm.MachineName)
		}
	}
	for id, vm := range vms {
		var why string
		switch {
		case len(names[id]) > 1:
			why = "it has several machine names"
		case vm.MachineName == "":
			why = "it has no machine name"
		default:
			continue
		}
		s.hold("vm/"+vm.ProviderID, unidentified, why, until)
		unclear++
		delete(s.next.Seen, id)
		delete(vms, id)
	}
	return vms, unclear
}

// suspicious returns why the list of machines or the listing is probably wrong, or "".
func (s *step) suspicious(class types.NamespacedName, vms share, machines *listedMachines) string {
	if vms.unowned == 0 {
		return ""
	}
	if machines.in[class.Namespace] == 0 {
		return fmt.Sprintf("namespace %[2]q has no machine, but VMs are listed: %[1]d", vms.listed, class.Namespace)
	}
	if vms.tooMany(s.allowed()) {
		return s.tooMany(vms)
	}
	expected, missing := machines.ofClass(class)
	if missing > 0 && (missing == expected || missing*100 > expected*s.policy.MaxPercent) {
		return fmt.Sprintf("the VMs of %d of the %d machines of the class are not listed", missing, expected)
	}
	return ""
}

// holdClass holds all orphans of a class. It adds an Event when the hold begins, and when more
// VMs or side resources have no machine than in the last Event, once in a period.
func (s *step) holdClass(class types.NamespacedName, of share, why string) {
	s.hold(classSubject(class), suspicious, why, s.now.Add(s.policy.Period))
	known, was := s.held[class.String()]
	if !was || of.unowned > known.Unowned && s.now.Sub(known.Reported) >= s.policy.Period {
		known = heldClass{Unowned: of.unowned, Reported: s.now}
		s.events = append(s.events, machinist.Event{
			Subject: classSubject(class), Type: corev1.EventTypeWarning, Reason: orphansHeld, Message: classSubject(class) + ": no orphan is deleted: " + why,
		})
	}
	s.next.Held[class.String()] = known
}

// classSubject returns the subject of a class.
func classSubject(class types.NamespacedName) string { return "machineclass/" + class.String() }
