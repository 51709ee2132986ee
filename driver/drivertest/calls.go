// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// CreateMachine implements [driver.Driver].
func (c *Cloud) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	q, r := call{op: driver.OpCreateMachine, ofMachine: true, latency: c.options.CreateLatency}, cmp.Or(req, new(driver.CreateMachineRequest))
	q.machine, q.class, q.secret = r.Machine, r.MachineClass, r.Secret
	return serve(ctx, c, q, c.create, func(state string) *driver.CreateMachineResponse {
		return &driver.CreateMachineResponse{LastKnownState: state}
	})
}

// InitializeMachine implements [driver.Driver].
func (c *Cloud) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	q, r := call{op: driver.OpInitializeMachine, ofMachine: true, latency: c.options.CallLatency}, cmp.Or(req, new(driver.InitializeMachineRequest))
	q.machine, q.class, q.secret = r.Machine, r.MachineClass, r.Secret
	return serve(ctx, c, q, c.initialize, nil)
}

// DeleteMachine implements [driver.Driver].
func (c *Cloud) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	q, r := call{op: driver.OpDeleteMachine, ofMachine: true, latency: c.options.DeleteLatency}, cmp.Or(req, new(driver.DeleteMachineRequest))
	q.machine, q.class, q.secret = r.Machine, r.MachineClass, r.Secret
	return serve(ctx, c, q, c.remove, func(state string) *driver.DeleteMachineResponse {
		return &driver.DeleteMachineResponse{LastKnownState: state}
	})
}

// GetMachineStatus implements [driver.Driver].
func (c *Cloud) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	q, r := call{op: driver.OpGetMachineStatus, ofMachine: true, latency: c.options.CallLatency}, cmp.Or(req, new(driver.GetMachineStatusRequest))
	q.machine, q.class, q.secret = r.Machine, r.MachineClass, r.Secret
	return serve(ctx, c, q, c.look, nil)
}

// ListMachines implements [driver.Driver].
func (c *Cloud) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	q, r := call{op: driver.OpListMachines, latency: c.options.CallLatency}, cmp.Or(req, new(driver.ListMachinesRequest))
	q.class, q.secret = r.MachineClass, r.Secret
	return serve(ctx, c, q, c.list, nil)
}

// ListSideResources implements [driver.SideResourceLister].
func (c *Cloud) ListSideResources(ctx context.Context, req *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	q, r := call{op: driver.OpListSideResources, latency: c.options.CallLatency}, cmp.Or(req, new(driver.ListSideResourcesRequest))
	q.class, q.secret = r.MachineClass, r.Secret
	return serve(ctx, c, q, c.listSides, nil)
}

// DeleteSideResource implements [driver.SideResourceDeleter].
func (c *Cloud) DeleteSideResource(ctx context.Context, req *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	q, r := call{op: driver.OpDeleteSideResource, latency: c.options.DeleteLatency}, cmp.Or(req, new(driver.DeleteSideResourceRequest))
	q.class, q.secret, q.side = r.MachineClass, r.Secret, r.Resource
	return serve(ctx, c, q, c.removeSide, nil)
}

// GetVolumeIDs implements [driver.Driver] for the volumes of [Cloud.Volume].
func (c *Cloud) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	q := call{op: driver.OpGetVolumeIDs, latency: c.options.CallLatency, ofVolumes: true}
	if req != nil {
		q.volumes = req.PVSpecs
	} else {
		q.invalid = true
	}
	return serve(ctx, c, q, func(w work) (*driver.GetVolumeIDsResponse, error) {
		resp := &driver.GetVolumeIDsResponse{}
		for _, spec := range w.volumes {
			if spec != nil && spec.CSI != nil && spec.CSI.Driver == c.csiDriver() {
				resp.VolumeIDs = append(resp.VolumeIDs, spec.CSI.VolumeHandle)
			}
		}
		return resp, nil
	}, nil)
}

// call has the arguments of a call.
type call struct {
	op        driver.Operation
	latency   time.Duration
	machine   *v1alpha1.Machine
	class     *v1alpha1.MachineClass
	secret    *corev1.Secret
	volumes   []*corev1.PersistentVolumeSpec
	side      driver.SideResource
	ofMachine bool // a machine is needed
	ofVolumes bool // neither class nor Secret is needed
	invalid   bool // there is no request
}

// work is a valid call with its scope.
type work struct {
	call
	scope string
	half  *Fault // if set, the call fails after some steps
}

// owner returns the owner of the objects of the call.
func (w work) owner() owner { return owner{scope: w.scope, machine: w.machine.Name} }

// steps returns the number of steps to do.
func (w work) steps(all int) int {
	switch {
	case w.half == nil:
		return all
	case w.half.Steps <= 0:
		return all - 1
	default:
		return min(all, w.half.Steps)
	}
}

// serve runs a call with checks, faults and latency. The effect runs with the lock held. note
// returns the response with a LastKnownState for a fault. It may be nil.
func serve[R any](ctx context.Context, c *Cloud, q call, effect func(work) (*R, error), note func(state string) *R) (resp *R, err error) {
	defer func() { c.count(q.op, err) }()
	if err := contextError(ctx); err != nil {
		return nil, err
	}
	w, err := c.check(q)
	if err != nil {
		return nil, err
	}
	resp, f, err := enter(c, w, effect)
	if f != nil && f.Kind == Hang {
		return nil, hang(ctx)
	}
	if refused := f != nil && f.Kind == Refuse; !refused {
		if late := c.wait(ctx, q.latency); late != nil {
			return nil, late
		}
	}
	if f == nil {
		return resp, err
	}
	if note != nil && f.LastKnownState != "" {
		return note(f.LastKnownState), f.error()
	}
	return nil, f.error()
}

// enter selects the fault of the call, and runs the effect if the fault allows it.
func enter[R any](c *Cloud, w work, effect func(work) (*R, error)) (*R, *Fault, error) {
	c.lock()
	defer c.unlock()
	if err := c.authenticate(w.call); err != nil {
		return nil, nil, err
	}
	name := ""
	if w.machine != nil {
		name = w.machine.Name
	}
	f := c.strike(w.op, name)
	if f != nil {
		switch stepwise := w.op == driver.OpCreateMachine || w.op == driver.OpDeleteMachine; {
		case f.Kind == Partial && stepwise:
			w.half = f
		case f.Kind != LoseResponse && f.Kind != Hang:
			f.Kind = Refuse
			return nil, f, nil
		case f.Kind == Hang:
			return nil, f, nil
		}
	}
	resp, err := effect(w)
	c.reschedule()
	c.catchUp()
	return resp, f, err
}

// check returns the call with its scope, or an error for an invalid call.
func (c *Cloud) check(q call) (work, error) {
	w := work{call: q}
	if slices.Contains(c.options.Unimplemented, q.op) {
		return w, status.Error(codes.Unimplemented, fmt.Sprintf("this cloud has no %s", q.op))
	}
	invalid := func(why string) (work, error) { return w, status.Error(codes.InvalidArgument, why) }
	switch {
	case q.invalid:
		return invalid("there is no request")
	case q.ofVolumes:
		return w, nil
	case q.class == nil:
		return invalid("there is no MachineClass")
	case q.secret == nil:
		return invalid("there is no Secret")
	case q.class.Provider != c.provider():
		return invalid(fmt.Sprintf("the provider of the class is %q, not %q", q.class.Provider, c.provider()))
	case q.ofMachine && (q.machine == nil || q.machine.Name == ""):
		return invalid("there is no Machine with a name")
	case q.op == driver.OpDeleteSideResource && (q.side.Kind == "" || q.side.ID == ""):
		return invalid("there is no side resource with a kind and an ID")
	case q.op == driver.OpCreateMachine && len(q.secret.Data["userData"]) == 0:
		return invalid("the Secret has no userData")
	}
	var ok bool
	if w.scope, ok = scopeOf(q.class); !ok {
		return invalid("the ProviderSpec is not a JSON object with a text as scope")
	}
	return w, nil
}

// scopeOf returns the scope in the ProviderSpec of a class, or its namespace.
func scopeOf(class *v1alpha1.MachineClass) (scope string, ok bool) {
	var spec struct {
		Scope string `json:"scope"`
	}
	if raw := class.ProviderSpec.Raw; len(raw) > 0 {
		if err := json.Unmarshal(raw, &spec); err != nil {
			return "", false
		}
	}
	if spec.Scope == "" {
		return class.Namespace, true
	}
	return spec.Scope, true
}

// authenticate returns an error for a wrong credential.
func (c *Cloud) authenticate(q call) error {
	if want := c.options.Credential; want != "" && !q.ofVolumes && string(q.secret.Data["credential"]) != want {
		return status.Error(codes.Unauthenticated, "the credential is not valid")
	}
	return nil
}
