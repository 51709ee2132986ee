// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// create is the effect of CreateMachine.
func (c *Cloud) create(w work) (*driver.CreateMachineResponse, error) {
	o := w.owner()
	match, dying := c.living(o, false), c.living(o, true)
	if c.options.ForgetfulCreate {
		match, dying = c.find("", o), nil
	}
	switch {
	case len(match) > 1:
		return nil, severalVMs(o, len(match))
	case len(match) == 1:
		return created(match[0]), nil
	case len(dying) > 0:
		return nil, status.Error(codes.Aborted, fmt.Sprintf("the VM of an earlier machine %q is still being deleted", o.machine))
	case c.options.Quota > 0 && c.countVMs() >= c.options.Quota:
		return nil, status.Error(codes.ResourceExhausted, fmt.Sprintf("the quota of %d VMs is used up", c.options.Quota))
	}
	kinds := sideKinds()
	steps := w.steps(len(kinds) + 1)
	sides := c.makeSides(o, kinds[:min(steps, len(kinds))])
	if steps <= len(kinds) {
		return nil, nil
	}
	v := c.makeVM(VM{
		Namespace: w.machine.Namespace, Machine: w.machine.Name, UID: string(w.machine.UID),
		Class: w.class.Name, Scope: w.scope, Initialized: !c.options.NeedsInitialization,
		ReadyAt: c.now.Add(max(0, c.options.CreateLatency) + max(0, c.options.BootTime)),
	}, w.secret.Data["userData"], sides)
	return created(v), nil
}

// created returns the response of CreateMachine for v.
func created(v *vm) *driver.CreateMachineResponse {
	return &driver.CreateMachineResponse{
		ProviderID:     v.ProviderID,
		NodeName:       v.NodeName,
		Addresses:      slices.Clone(v.Addresses),
		LastKnownState: "created at " + v.CreatedAt.UTC().Format(time.RFC3339),
	}
}

// countVMs returns the number of VMs that exist.
func (c *Cloud) countVMs() (n int) {
	for _, v := range c.vms {
		if exists(v.GoneAt, c.now) {
			n++
		}
	}
	return n
}

// makeSides returns side resources of the given kinds without a VM. It uses those of a failed
// create and makes the others.
func (c *Cloud) makeSides(o owner, kinds []string) (out []*side) {
	leftovers := c.sidesOf(o, "")
	for _, kind := range kinds {
		if i := slices.IndexFunc(leftovers, func(s *side) bool { return s.Kind == kind }); i >= 0 {
			out = append(out, leftovers[i])
			leftovers = slices.Delete(leftovers, i, i+1)
			continue
		}
		s := &side{
			SideResource: driver.SideResource{Kind: kind, ID: c.name(kind, o), MachineName: o.machine},
			scope:        o.scope, createdAt: c.now,
		}
		c.sides = append(c.sides, s)
		out = append(out, s)
	}
	return out
}

// makeVM makes a VM with its identity and side resources. A restored VM has an identity.
func (c *Cloud) makeVM(like VM, userData []byte, sides []*side) *vm {
	v := &vm{VM: like, userData: slices.Clone(userData)}
	if v.ProviderID == "" {
		v.NodeName, v.CreatedAt = c.nodeName(v.Machine), c.now
		v.ProviderID = c.vmID(v)
	}
	c.addresses++
	v.Addresses = []corev1.NodeAddress{{
		Type:    corev1.NodeInternalIP,
		Address: fmt.Sprintf("10.%d.%d.%d", c.addresses>>16&255, c.addresses>>8&255, c.addresses&255),
	}}
	for _, s := range sides {
		s.ProviderID = v.ProviderID
	}
	c.vms = append(c.vms, v)
	c.tell(Event{Kind: VMCreated, VM: v.in(vmPending)})
	return v
}

// vmID returns the provider ID of a new VM.
func (c *Cloud) vmID(v *vm) string {
	if c.options.ProviderID != nil {
		if id := c.options.ProviderID(v.NodeName); c.anywhere(id) == nil {
			return id
		}
	}
	return c.name(c.provider(), v.owner())
}

// name returns a new ID for an owner, such as "disk:///shop/web-1/1".
func (c *Cloud) name(kind string, o owner) string {
	if c.made == nil {
		c.made = map[string]int{}
	}
	prefix := kind + ":///" + o.scope + "/" + o.machine + "/"
	for {
		c.made[prefix]++
		id := fmt.Sprintf("%s%d", prefix, c.made[prefix])
		if !slices.ContainsFunc(c.vms, func(v *vm) bool { return v.ProviderID == id }) { // a restored VM may have it
			return id
		}
	}
}

// initialize is the effect of InitializeMachine.
func (c *Cloud) initialize(w work) (*driver.InitializeMachineResponse, error) {
	if !c.options.NeedsInitialization {
		return nil, status.Error(codes.Unimplemented, "VMs of this cloud need no initialization")
	}
	var match []*vm
	if id := w.machine.Spec.ProviderID; id == "" {
		match = c.find("", w.owner())
	} else if v := c.byID(id, w.scope); v != nil && v.DeletedAt.IsZero() {
		match = append(match, v)
	}
	if err := exactlyOne(w.owner(), match); err != nil {
		return nil, err
	}
	v := match[0]
	v.Initialized = true
	return &driver.InitializeMachineResponse{ProviderID: v.ProviderID, NodeName: v.NodeName, Addresses: slices.Clone(v.Addresses)}, nil
}

// look is the effect of GetMachineStatus.
func (c *Cloud) look(w work) (*driver.GetMachineStatusResponse, error) {
	match := c.find(w.machine.Spec.ProviderID, w.owner())
	if err := exactlyOne(w.owner(), match); err != nil {
		return nil, err
	}
	v := match[0]
	resp := &driver.GetMachineStatusResponse{ProviderID: v.ProviderID, NodeName: v.NodeName, Addresses: slices.Clone(v.Addresses)}
	if !v.Initialized {
		return resp, status.Error(codes.Uninitialized, fmt.Sprintf("the VM of machine %q is not initialized", v.Machine))
	}
	return resp, nil
}

// exactlyOne returns an error unless there is exactly one VM.
func exactlyOne(o owner, match []*vm) error {
	switch len(match) {
	case 0:
		return status.Error(codes.NotFound, fmt.Sprintf("there is no VM of machine %q", o.machine))
	case 1:
		return nil
	default:
		return severalVMs(o, len(match))
	}
}

// severalVMs returns the error of a machine with several VMs.
func severalVMs(o owner, n int) error {
	return status.Error(codes.OutOfRange, fmt.Sprintf("there are %d VMs of machine %q", n, o.machine))
}

// remove is the effect of DeleteMachine.
func (c *Cloud) remove(w work) (*driver.DeleteMachineResponse, error) {
	o := w.owner()
	var match []*vm
	if id := w.machine.Spec.ProviderID; id == "" {
		match = slices.DeleteFunc(c.living(o, true), func(v *vm) bool { return !shown(v.CreatedAt, v.GoneAt, c.now, c.options.Lag) })
	} else if v := c.byID(id, w.scope); v != nil {
		match = append(match, v)
	}
	var tasks []func()
	for _, v := range match {
		if v.DeletedAt.IsZero() {
			tasks = append(tasks, func() { c.end(v) })
		}
		for _, s := range c.sidesOf(v.owner(), v.ProviderID) {
			if s.goneAt.IsZero() {
				tasks = append(tasks, func() { s.goneAt = v.GoneAt })
			}
		}
	}
	for _, s := range c.sidesOf(o, "") {
		if shown(s.createdAt, time.Time{}, c.now, c.options.Lag) {
			tasks = append(tasks, func() { s.goneAt = c.now })
		}
	}
	if len(match)+len(tasks) == 0 {
		return nil, status.Error(codes.NotFound, fmt.Sprintf("there is nothing of machine %q", o.machine))
	}
	for _, task := range tasks[:max(0, w.steps(len(tasks)))] {
		task()
	}
	return &driver.DeleteMachineResponse{}, nil
}

// end starts the deletion of a VM.
func (c *Cloud) end(v *vm) {
	v.DeletedAt, v.GoneAt = c.now, c.now.Add(max(0, c.options.ShutdownTime))
	c.tell(Event{Kind: VMDeletionBegan, VM: v.in(vmDeleting)})
}

// list is the effect of ListMachines.
func (c *Cloud) list(w work) (*driver.ListMachinesResponse, error) {
	resp := &driver.ListMachinesResponse{MachineList: map[string]string{}}
	for _, v := range c.vms {
		if v.Scope == w.scope && shown(v.CreatedAt, v.GoneAt, c.now, c.options.Lag) {
			resp.MachineList[v.ProviderID] = v.Machine
		}
	}
	return resp, nil
}

// listSides is the effect of ListSideResources.
func (c *Cloud) listSides(w work) (*driver.ListSideResourcesResponse, error) {
	resp := &driver.ListSideResourcesResponse{}
	for _, s := range c.sides {
		if s.scope == w.scope && shown(s.createdAt, s.goneAt, c.now, c.options.Lag) {
			resp.Resources = append(resp.Resources, s.SideResource)
		}
	}
	return resp, nil
}

// removeSide is the effect of DeleteSideResource.
func (c *Cloud) removeSide(w work) (*driver.DeleteSideResourceResponse, error) {
	i := slices.IndexFunc(c.sides, func(s *side) bool {
		return s.Kind == w.side.Kind && s.ID == w.side.ID && s.scope == w.scope && exists(s.goneAt, c.now)
	})
	if i < 0 {
		return nil, status.Error(codes.NotFound, fmt.Sprintf("there is no %s %q", w.side.Kind, w.side.ID))
	}
	s := c.sides[i]
	if s.ProviderID != "" {
		return nil, status.Error(codes.FailedPrecondition, fmt.Sprintf("the %s %q belongs to the VM %q", s.Kind, s.ID, s.ProviderID))
	}
	s.goneAt = c.now
	return &driver.DeleteSideResourceResponse{}, nil
}
