// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
)

// sideFindings are the side resources without an owner in one listing.
type sideFindings struct {
	class     types.NamespacedName
	asOf      time.Time
	deletable bool
	resources map[string]driver.SideResource // by sideKey
	share     share
}

// sideKey is the key of a side resource in a [State].
func sideKey(r driver.SideResource) string { return r.Kind + " " + r.ID }

// sideSubject returns the subject of a side resource.
func sideSubject(r driver.SideResource) string {
	return fmt.Sprintf("sideresource/%s/%s", r.Kind, r.ID)
}

// judgeSides finds the side resources without an owner in a usable listing, and deletes the
// records that it disproves. The share counts machine names, because a machine has several
// side resources.
func (s *step) judgeSides(l Listing) {
	if l.SideResources.AsOf.IsZero() {
		return
	}
	if h := s.unusableSides(l); h.Reason != "" {
		s.holds = append(s.holds, h)
		return
	}
	f := sideFindings{class: l.Class, asOf: l.SideResources.AsOf, deletable: l.DeletesSideResources, resources: map[string]driver.SideResource{}}
	resources, unclear := s.distinctSides(l.SideResources.Items)
	names, unowned := map[string]bool{}, map[string]bool{}
	for key, r := range resources {
		names[r.MachineName] = true
		if !s.protects(r) {
			unowned[r.MachineName] = true
			f.resources[key] = r
		}
	}
	listed := func(key string) bool { return has(resources)(key) || unclear[key] }
	f.share = share{of: "machine names of side resources", unowned: len(unowned) + len(unclear), listed: len(names) + len(unclear)}
	f.share.addDeleted(s.next.deletedOf(true, l.Class.Namespace), has(unowned), has(names))
	if f.share.tooMany(s.allowed()) {
		s.holdClass(l.Class, f.share, s.tooMany(f.share))
		clear(f.resources)
	}
	s.next.forget(true, l.Class, listed, has(f.resources))
	s.sides = append(s.sides, f)
}

// distinctSides returns the listed side resources that are identified, and the keys of the
// others.
func (s *step) distinctSides(items []driver.SideResource) (resources map[string]driver.SideResource, unclear map[string]bool) {
	resources, unclear = map[string]driver.SideResource{}, map[string]bool{}
	for _, r := range items {
		key := sideKey(r)
		known, twice := resources[key]
		switch {
		case r.Kind == "" || r.ID == "" || r.MachineName == "", twice && known != r:
			unclear[key] = true
		default:
			resources[key] = r
		}
	}
	for key := range unclear {
		delete(resources, key)
		s.hold("sideresource/"+strings.Replace(key, " ", "/", 1), unidentified, "it has no kind, no ID or no machine name, or is listed twice with differences", s.now.Add(s.policy.Period))
	}
	return resources, unclear
}

func has[V any](m map[string]V) func(string) bool {
	return func(key string) bool { _, ok := m[key]; return ok }
}

// unusableSides returns the hold of a listing of side resources that cannot be used, or a
// hold without a reason.
func (s *step) unusableSides(l Listing) machinist.Hold {
	h := machinist.Hold{Subject: classSubject(l.Class), Reason: listingUnusable, Until: s.now.Add(s.policy.retry())}
	switch at := l.SideResources.AsOf; {
	case !l.SideResources.Complete:
		h.Message = "the listing of side resources is incomplete"
	case s.stale(at):
		h.Message = s.age("listing of side resources", at)
	case s.Machines.AsOf.Before(at):
		h.Reason, h.Message = machinesUnusable, fmt.Sprintf("the machines were read %s before the side resources", at.Sub(s.Machines.AsOf))
	default:
		return machinist.Hold{}
	}
	return h
}

// protects reports whether a side resource has an owner: a machine with its machine name in
// any namespace, a machine with its provider ID, or a listed VM with that name or ID.
func (s *step) protects(r driver.SideResource) bool {
	if _, ok := s.owners.byName[r.MachineName]; ok {
		return true
	}
	id := s.owners.keys.of(r.ProviderID)
	if _, ok := s.owners.byID[id]; ok {
		return true
	}
	vms := s.listedVMs()
	return vms.names[r.MachineName] || vms.ids[id]
}

// considerSide records a side resource without an owner and adds it to the candidates.
func (s *step) considerSide(f sideFindings, key string, r driver.SideResource) {
	g := s.next.see(key, unownedRecord{Class: f.class.String(), Kind: r.Kind, MachineName: r.MachineName, Reason: leftover}, f.asOf)
	s.addCandidate(candidate{
		unownedRecord: g, key: key, subject: sideSubject(r), share: f.share, namespace: f.class.Namespace, reportOnly: !f.deletable,
		action: func(message string) machinist.Action {
			return DeleteSideResource{Resource: r, Namespace: f.class.Namespace, Class: f.class.Name, Reason: leftover, Message: message}
		},
	})
}

// listedVMs are the VMs of all listings, including held ones.
type listedVMs struct {
	ids     map[idKey]bool
	names   map[string]bool
	schemes map[string]bool
}

// listedVMs returns the VMs of all listings. It computes them once.
func (s *step) listedVMs() *listedVMs {
	if s.listed != nil {
		return s.listed
	}
	s.listed = &listedVMs{ids: map[idKey]bool{}, names: map[string]bool{}, schemes: map[string]bool{}}
	for _, l := range s.Listings {
		for _, vm := range l.VMs.Items {
			if id := s.owners.keys.of(vm.ProviderID); id != "" {
				s.listed.ids[id] = true
			}
			s.listed.names[vm.MachineName] = true
			s.listed.schemes[schemeOf(vm.ProviderID)] = true
		}
	}
	return s.listed
}
