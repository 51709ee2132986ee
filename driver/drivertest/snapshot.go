// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/driver"
)

// A Snapshot has all objects of a [Cloud] at one time, without lag.
type Snapshot struct {
	// Time of the snapshot.
	Time time.Time
	// VMs that exist, sorted by provider ID.
	VMs []VM
	// SideResources that exist and are not being deleted, sorted by kind and ID.
	SideResources []driver.SideResource
}

// Snapshot returns all objects of the cloud. The caller owns the result.
func (c *Cloud) Snapshot() Snapshot {
	c.lock()
	defer c.unlock()
	s := Snapshot{Time: c.now}
	for _, v := range c.vms {
		if exists(v.GoneAt, c.now) {
			s.VMs = append(s.VMs, v.seen(c.now))
		}
	}
	for _, r := range c.sides {
		if r.goneAt.IsZero() {
			s.SideResources = append(s.SideResources, r.SideResource)
		}
	}
	slices.SortFunc(s.VMs, func(a, b VM) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	slices.SortFunc(s.SideResources, func(a, b driver.SideResource) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
	})
	return s
}

// Empty reports whether there are no objects.
func (s Snapshot) Empty() bool { return len(s.VMs) == 0 && len(s.SideResources) == 0 }

// Of returns the objects of a machine in all scopes.
func (s Snapshot) Of(machine string) Snapshot {
	out := Snapshot{Time: s.Time}
	for _, v := range s.VMs {
		if v.Machine == machine {
			out.VMs = append(out.VMs, v)
		}
	}
	for _, r := range s.SideResources {
		if r.MachineName == machine {
			out.SideResources = append(out.SideResources, r)
		}
	}
	return out
}

// Leftovers returns the side resources without a VM.
func (s Snapshot) Leftovers() []driver.SideResource {
	return slices.DeleteFunc(slices.Clone(s.SideResources), func(r driver.SideResource) bool { return r.ProviderID != "" })
}

// String returns the snapshot with one line for each object, or "nothing". Its form may change.
func (s Snapshot) String() string {
	if s.Empty() {
		return "nothing\n"
	}
	var b strings.Builder
	for _, v := range s.VMs {
		b.WriteString(v.String() + "\n")
	}
	for _, r := range s.SideResources {
		fmt.Fprintf(&b, "%s %s of machine %s", r.Kind, r.ID, r.MachineName)
		if r.ProviderID == "" {
			b.WriteString(", without a vm")
		}
		b.WriteString("\n")
	}
	return b.String()
}
