// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver"
)

// A VMState is the state of a VM of a [Cloud].
type VMState uint8

// The states of a VM.
const (
	// vmPending means that the VM exists and is not ready.
	vmPending VMState = iota + 1
	// VMRunning means that the VM is ready.
	VMRunning
	// vmStopped means that the VM was stopped by [Cloud.Stop].
	vmStopped
	// vmDeleting means that the deletion of the VM has begun.
	vmDeleting
	// vmGone means that the VM ceased to exist.
	vmGone
)

// String returns the name of the state, such as "Pending".
func (s VMState) String() string {
	names := []string{"", "Pending", "Running", "Stopped", "Deleting", "Gone"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("VMState(%d)", uint8(s))
	}
	return names[s]
}

// A VM is a virtual machine of a [Cloud].
type VM struct {
	// ProviderID identifies the VM.
	ProviderID string
	// Namespace, Machine and UID are those of its Machine.
	Namespace, Machine, UID string
	// Class is the name of its MachineClass.
	Class string
	// Scope is the scope of that class.
	Scope string
	// NodeName is the name of its Node.
	NodeName string
	// Addresses of the VM.
	Addresses []corev1.NodeAddress
	// State of the VM.
	State VMState
	// Initialized is false if the cloud needs initialization and InitializeMachine was not
	// called.
	Initialized bool
	// CreatedAt is when the VM was created.
	CreatedAt time.Time
	// ReadyAt is when the VM is ready to join, if it exists and is initialized then.
	ReadyAt time.Time
	// DeletedAt is when its deletion began. Zero means that it is not being deleted.
	DeletedAt time.Time
	// GoneAt is when it ceases to exist. Zero means that it is not being deleted.
	GoneAt time.Time
}

// String returns the VM in one line. Its form may change.
func (v VM) String() string {
	text := fmt.Sprintf("vm %s of machine %s, %s", v.ProviderID, v.Machine, v.State)
	if !v.Initialized {
		text += ", not initialized"
	}
	return text
}

// vm is a VM with internal fields.
type vm struct {
	VM
	userData []byte
	booted   bool // the event VMReady is recorded, or will never be
	gone     bool // the event VMDeleted is recorded
}

// side is a side resource with internal fields.
type side struct {
	driver.SideResource
	scope             string
	createdAt, goneAt time.Time
}

// owner returns the owner of the VM.
func (v *vm) owner() owner { return owner{scope: v.Scope, machine: v.Machine} }

// owner returns the owner of the side resource.
func (s *side) owner() owner { return owner{scope: s.scope, machine: s.MachineName} }

// exists reports whether an object that ends at goneAt exists at now.
func exists(goneAt, now time.Time) bool { return goneAt.IsZero() || now.Before(goneAt) }

// shown reports whether an object with this begin and end is visible at now with the lag.
func shown(begin, end, now time.Time, lag time.Duration) bool {
	lag = max(0, lag)
	return !now.Before(begin.Add(lag)) && (end.IsZero() || now.Before(end.Add(lag)))
}

// stateAt returns the state of the VM at now.
func (v *vm) stateAt(now time.Time) VMState {
	switch {
	case !exists(v.GoneAt, now):
		return vmGone
	case !v.DeletedAt.IsZero():
		return vmDeleting
	case v.State == vmStopped:
		return vmStopped
	case now.Before(v.ReadyAt):
		return vmPending
	default:
		return VMRunning
	}
}

// seen returns a copy of the VM with its state at now.
func (v *vm) seen(now time.Time) VM {
	return v.in(v.stateAt(now))
}

// in returns a copy of the VM in a state.
func (v *vm) in(s VMState) VM {
	out := v.VM
	out.State = s
	out.Addresses = slices.Clone(v.Addresses)
	return out
}

// find returns the visible VMs of a machine that are not being deleted, by provider ID, or by
// owner if the provider ID is empty.
func (c *Cloud) find(providerID string, o owner) (match []*vm) {
	for _, v := range c.vms {
		if providerID != "" && v.ProviderID != providerID || v.Scope != o.scope || providerID == "" && v.Machine != o.machine {
			continue
		}
		if shown(v.CreatedAt, v.DeletedAt, c.now, c.options.Lag) {
			match = append(match, v)
		}
	}
	return match
}

// living returns the existing VMs of an owner without lag. With dying it includes those that
// are being deleted.
func (c *Cloud) living(o owner, dying bool) (match []*vm) {
	for _, v := range c.vms {
		if v.owner() == o && exists(v.GoneAt, c.now) && (dying || v.DeletedAt.IsZero()) {
			match = append(match, v)
		}
	}
	return match
}

// byID returns the VM with a provider ID that exists in a scope, or nil.
func (c *Cloud) byID(providerID, scope string) *vm {
	for _, v := range c.vms {
		if v.ProviderID == providerID && v.Scope == scope && exists(v.GoneAt, c.now) {
			return v
		}
	}
	return nil
}

// sidesOf returns the existing side resources of an owner that belong to the VM with a provider
// ID. An empty provider ID means no VM.
func (c *Cloud) sidesOf(o owner, providerID string) (match []*side) {
	for _, s := range c.sides {
		if s.owner() == o && s.ProviderID == providerID && exists(s.goneAt, c.now) {
			match = append(match, s)
		}
	}
	return match
}
