// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"slices"
)

// AddVM adds a VM without CreateMachine, such as an orphan, a duplicate or a foreign VM. It uses
// Namespace, Machine, UID, Class and Scope of like. An empty Scope means Namespace. The VM is
// initialized, has side resources and boots. The quota does not limit AddVM. It returns the VM.
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

// Restore adds a VM of an earlier Cloud, as [Cloud.Snapshot] returned it, for example after the
// restart of a server. Its ProviderID, state and times do not change. It gets new addresses and new
// side resources. Its user data is not restored.
func (c *Cloud) Restore(old VM) {
	c.lock()
	defer c.unlock()
	sides := c.makeSides(owner{scope: old.Scope, machine: old.Machine}, sideKinds())
	c.makeVM(old, nil, sides)
	for _, s := range sides {
		s.goneAt = old.GoneAt
	}
	c.reschedule()
	c.catchUp()
}

// Terminate removes a VM and its side resources at once, like a cloud that reclaims capacity.
// It reports whether the VM existed.
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

// Stop stops a VM permanently. The VM still exists. Stop reports whether it existed.
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

// UserData returns the user data of a VM. The caller owns it. Nil means that the VM does not
// exist or was added by [Cloud.AddVM].
func (c *Cloud) UserData(providerID string) []byte {
	c.lock()
	defer c.unlock()
	if v := c.anywhere(providerID); v != nil {
		return slices.Clone(v.userData)
	}
	return nil
}

// anywhere returns the existing VM with a provider ID in any scope, or nil.
func (c *Cloud) anywhere(providerID string) *vm {
	i := slices.IndexFunc(c.vms, func(v *vm) bool { return v.ProviderID == providerID && exists(v.GoneAt, c.now) })
	if i < 0 {
		return nil
	}
	return c.vms[i]
}
