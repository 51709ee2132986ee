// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"slices"
)

// What happens to a cloud from outside, past the driver.

// AddVM puts a VM into the cloud that no CreateMachine made: an orphan, a
// duplicate, somebody else's. Of like it uses Namespace, Machine, UID, Class and
// Scope, where an empty Scope means Namespace. The VM has the side resources of
// any other, is initialised, and boots as any other. It does not count against
// the quota before it exists. AddVM returns the VM.
func (c *Cloud) AddVM(like VM) VM {
	c.lock()
	defer c.unlock()
	scope := cmp.Or(like.Scope, like.Namespace)
	o := owner{scope: scope, machine: like.Machine}
	v := c.makeVM(VM{
		Namespace: like.Namespace, Machine: like.Machine, UID: like.UID, Class: like.Class, Scope: scope,
		Initialized: true, ReadyAt: c.now.Add(max(0, c.options.BootTime)),
	}, nil, c.makeSides(o, sideKinds()))
	c.reschedule()
	c.catchUp()
	return v.seen(c.now)
}

// Terminate makes a VM and its side resources vanish at once, as a cloud does
// that takes its capacity back. It reports whether there was such a VM.
func (c *Cloud) Terminate(providerID string) bool {
	c.lock()
	defer c.unlock()
	v := c.anywhere(providerID)
	if v == nil {
		return false
	}
	for _, s := range c.sidesOf(v.owner(), v.ProviderID) {
		s.goneAt = c.now
	}
	v.GoneAt = c.now
	if v.DeletedAt.IsZero() {
		v.DeletedAt = c.now
	}
	c.reschedule()
	c.catchUp()
	return true
}

// Stop switches a VM off for good. It exists, is found, and counts. It reports
// whether there was such a VM.
func (c *Cloud) Stop(providerID string) bool {
	c.lock()
	defer c.unlock()
	v := c.anywhere(providerID)
	if v == nil {
		return false
	}
	if v.State != vmStopped && v.DeletedAt.IsZero() {
		v.State, v.booted = vmStopped, true
		c.reschedule()
	}
	return true
}

// UserData returns the user data that a VM was made with. The caller owns it. It
// is nil if there is no such VM, or if it was planted.
func (c *Cloud) UserData(providerID string) []byte {
	c.lock()
	defer c.unlock()
	if v := c.anywhere(providerID); v != nil {
		return slices.Clone(v.userData)
	}
	return nil
}

// anywhere returns the VM with a provider ID that exists in any scope, or nil.
func (c *Cloud) anywhere(providerID string) *vm {
	i := slices.IndexFunc(c.vms, func(v *vm) bool { return v.ProviderID == providerID && exists(v.GoneAt, c.now) })
	if i < 0 {
		return nil
	}
	return c.vms[i]
}
