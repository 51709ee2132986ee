// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// broken is a driver with one error. The methods that are set replace those of the cloud.
type broken struct {
	*Cloud
	create     method[createRequest, createResponse]
	initialize method[initializeRequest, initializeResponse]
	remove     method[deleteRequest, deleteResponse]
	get        method[getRequest, getResponse]
	list       method[listRequest, listResponse]
	volumes    method[driver.GetVolumeIDsRequest, driver.GetVolumeIDsResponse]
	removeSide method[sideRequest, sideResponse]
}

// Requests and responses.
type (
	createRequest      = driver.CreateMachineRequest
	createResponse     = driver.CreateMachineResponse
	initializeRequest  = driver.InitializeMachineRequest
	initializeResponse = driver.InitializeMachineResponse
	deleteRequest      = driver.DeleteMachineRequest
	deleteResponse     = driver.DeleteMachineResponse
	getRequest         = driver.GetMachineStatusRequest
	getResponse        = driver.GetMachineStatusResponse
	listRequest        = driver.ListMachinesRequest
	listResponse       = driver.ListMachinesResponse
	sideRequest        = driver.DeleteSideResourceRequest
	sideResponse       = driver.DeleteSideResourceResponse
)

func (b *broken) CreateMachine(ctx context.Context, r *createRequest) (*createResponse, error) {
	return either(b.create, b.Cloud.CreateMachine)(ctx, r)
}

func (b *broken) InitializeMachine(ctx context.Context, r *initializeRequest) (*initializeResponse, error) {
	return either(b.initialize, b.Cloud.InitializeMachine)(ctx, r)
}

func (b *broken) DeleteMachine(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
	return either(b.remove, b.Cloud.DeleteMachine)(ctx, r)
}

func (b *broken) GetMachineStatus(ctx context.Context, r *getRequest) (*getResponse, error) {
	return either(b.get, b.Cloud.GetMachineStatus)(ctx, r)
}

func (b *broken) ListMachines(ctx context.Context, r *listRequest) (*listResponse, error) {
	return either(b.list, b.Cloud.ListMachines)(ctx, r)
}

func (b *broken) GetVolumeIDs(ctx context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return either(b.volumes, b.Cloud.GetVolumeIDs)(ctx, r)
}

func (b *broken) DeleteSideResource(ctx context.Context, r *sideRequest) (*sideResponse, error) {
	return either(b.removeSide, b.Cloud.DeleteSideResource)(ctx, r)
}

// another makes one more VM of a machine, and returns its provider ID.
func (b *broken) another(m *v1alpha1.Machine) string {
	return b.AddVM(VM{Namespace: m.Namespace, Machine: m.Name, UID: string(m.UID)}).ProviderID
}

// method is a method of a driver.
type method[Q, R any] func(context.Context, *Q) (*R, error)

// either returns set if it is not nil, otherwise other.
func either[Q, R any](set, other method[Q, R]) method[Q, R] {
	if set != nil {
		return set
	}
	return other
}

// answering returns a method whose responses are edited.
func answering[Q, R any](call method[Q, R], edit func(*R)) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		resp, err := call(ctx, q)
		if resp != nil {
			edit(resp)
		}
		return resp, err
	}
}

// succeeding returns a method that does something more after a success.
func succeeding[Q, R any](call method[Q, R], do func(*Q, *R)) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		resp, err := call(ctx, q)
		if err == nil {
			do(q, resp)
		}
		return resp, err
	}
}

// failing returns a method whose errors are edited.
func failing[Q, R any](call method[Q, R], edit func(context.Context, *Q, error) error) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		resp, err := call(ctx, q)
		if err != nil {
			err = edit(ctx, q, err)
		}
		return resp, err
	}
}

// recoding returns a method that has one code for another, and no response then.
func recoding[Q, R any](call method[Q, R], from, to codes.Code) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		if resp, err := call(ctx, q); codes.Of(err) != from {
			return resp, err
		}
		return nil, status.Error(to, "recoded")
	}
}

// unless returns a method that makes no call when a condition holds, or never calls without one. It
// returns the error then, or an empty response.
func unless[Q, R any](when func(context.Context, *Q) bool, err error, call method[Q, R]) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		switch {
		case when != nil && !when(ctx, q):
			return call(ctx, q)
		case err != nil:
			return nil, err
		default:
			return new(R), nil
		}
	}
}

// dropping returns a method that returns no response.
func dropping[Q, R any](call method[Q, R]) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		_, err := call(ctx, q)
		return nil, err
	}
}

// A flaw is one error of a driver.
type flaw struct {
	caught  string // cases that must fail
	options CloudOptions
	breakIt func(b *broken)
	harness func(h *Harness)
}

// flaws are the errors of drivers that the kit must report.
var flaws = map[string]flaw{
	// CreateMachine.
	"makes another VM every time": {caught: "CreateTwice CreateByAnotherProcess CreateConcurrently", breakIt: func(b *broken) {
		b.create = succeeding(b.Cloud.CreateMachine, func(r *createRequest, resp *createResponse) {
			if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
				resp.ProviderID = b.another(r.Machine)
			}
		})
	}},
	"looks for an existing VM only where it may not be shown yet": {
		caught:  "CreateTwice CreateByAnotherProcess CreateConcurrently CreateWithNewUID",
		options: CloudOptions{Lag: 10 * time.Second, ForgetfulCreate: true}, breakIt: func(*broken) {},
	},
	"remembers in memory what it made": {caught: "CreateByAnotherProcess", breakIt: rememberInMemory, harness: func(h *Harness) {
		first := h.New().(*broken)
		h.New = func() driver.Driver {
			b := &broken{Cloud: first.Cloud}
			rememberInMemory(b)
			return b
		}
	}},
	"keys by UID": {caught: "CreateWithNewUID", breakIt: func(b *broken) {
		b.create = succeeding(b.Cloud.CreateMachine, func(r *createRequest, resp *createResponse) {
			for _, v := range b.Snapshot().Of(r.Machine.Name).VMs {
				if v.ProviderID == resp.ProviderID && v.UID != string(r.Machine.UID) {
					resp.ProviderID = b.another(r.Machine)
				}
			}
		})
	}},
	"answers without a provider ID": {caught: "CreateReturnsIdentity", breakIt: func(b *broken) {
		b.create = answering(b.Cloud.CreateMachine, func(resp *createResponse) { resp.ProviderID = "" })
	}},
	"answers without a node name": {caught: "CreateReturnsIdentity", breakIt: func(b *broken) {
		b.create = answering(b.Cloud.CreateMachine, func(resp *createResponse) { resp.NodeName = "" })
	}},
	"makes a second VM and returns the first": {caught: "CreateTwice", breakIt: func(b *broken) {
		b.create = succeeding(b.Cloud.CreateMachine, func(r *createRequest, _ *createResponse) {
			if b.Calls(driver.OpCreateMachine, codes.OK) == 2 {
				b.another(r.Machine)
			}
		})
	}},
	"answers with another provider ID the second time": {caught: "CreateTwice", breakIt: func(b *broken) {
		b.create = answering(b.Cloud.CreateMachine, func(resp *createResponse) {
			if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
				resp.ProviderID += "-again"
			}
		})
	}},
	"names the node anew every time": {caught: "CreateTwice GetFindsByName", breakIt: func(b *broken) {
		var n atomic.Int64
		b.create = answering(b.Cloud.CreateMachine, func(resp *createResponse) { resp.NodeName = fmt.Sprintf("ip-10-0-0-%d", n.Add(1)) })
	}},
	"gives all VMs one ID": {caught: "IdentityIsStable", breakIt: func(b *broken) {
		b.create = answering(b.Cloud.CreateMachine, func(resp *createResponse) { resp.ProviderID = "the-vm" })
	}},
	"answers nothing": {caught: "CreateReturnsIdentity", breakIt: func(b *broken) { b.create = dropping(b.Cloud.CreateMachine) }},
	"takes the last answer for a lost one as a failure": {caught: "CreateTwice CreateConcurrently RequestsAreUnchanged", breakIt: func(b *broken) {
		b.create = unless(func(_ context.Context, r *createRequest) bool {
			return r != nil && r.Machine != nil && len(b.Snapshot().Of(r.Machine.Name).VMs) > 0
		}, status.Error(codes.AlreadyExists, "it is there"), b.Cloud.CreateMachine)
	}},

	// GetMachineStatus.
	"says Unknown instead of NotFound": {caught: "GetWithoutVM GetAfterDelete", breakIt: func(b *broken) {
		b.get = recoding(b.Cloud.GetMachineStatus, codes.NotFound, codes.Unknown)
	}},
	"says it in the text and not in the code": {caught: "GetWithoutVM ErrorsHaveCodes", breakIt: func(b *broken) {
		b.get = failing(b.Cloud.GetMachineStatus, func(ctx context.Context, _ *getRequest, err error) error {
			if ctx.Err() != nil {
				return err
			}
			return errors.New(err.Error())
		})
	}},
	"finds nothing without a provider ID": {caught: "GetFindsByName", breakIt: func(b *broken) {
		b.get = unless(func(_ context.Context, r *getRequest) bool {
			return r != nil && r.Machine != nil && r.Machine.Spec.ProviderID == ""
		}, status.Error(codes.NotFound, "no id"), b.Cloud.GetMachineStatus)
	}},
	"finds nothing with a provider ID": {caught: "GetFindsByProviderID", breakIt: func(b *broken) {
		b.get = unless(func(_ context.Context, r *getRequest) bool {
			return r != nil && r.Machine != nil && r.Machine.Spec.ProviderID != ""
		}, status.Error(codes.NotFound, "no such id"), b.Cloud.GetMachineStatus)
	}},
	"finds what was deleted": {caught: "GetAfterDelete DeleteRemovesAll", breakIt: func(b *broken) {
		b.get = func(ctx context.Context, r *getRequest) (*getResponse, error) {
			resp, err := b.Cloud.GetMachineStatus(ctx, r)
			if codes.Of(err) == codes.NotFound && strings.Contains(b.History().String(), r.Machine.Name+",") {
				return &getResponse{ProviderID: "old"}, nil
			}
			return resp, err
		}
	}},
	"looks without minding its context": {caught: "EndedContext", breakIt: func(b *broken) {
		b.get = unless(func(ctx context.Context, _ *getRequest) bool { return ctx.Err() != nil }, nil, b.Cloud.GetMachineStatus)
	}},
	"gives another ID every time": {caught: "IdentityIsStable", breakIt: func(b *broken) {
		var n atomic.Int64
		b.get = answering(b.Cloud.GetMachineStatus, func(resp *getResponse) { resp.ProviderID += fmt.Sprintf("#%d", n.Add(1)/2) })
	}},
	"says Uninitialized without saying of what": {
		caught: "UninitializedHasIdentity", options: CloudOptions{NeedsInitialization: true}, breakIt: func(b *broken) {
			b.get = func(ctx context.Context, r *getRequest) (*getResponse, error) {
				resp, err := b.Cloud.GetMachineStatus(ctx, r)
				if err != nil {
					resp = nil
				}
				return resp, err
			}
		},
	},

	// DeleteMachine.
	"does nothing without a provider ID": {caught: "DeleteFindsByName CreateAfterFailure", breakIt: func(b *broken) {
		b.remove = unless(func(ctx context.Context, r *deleteRequest) bool {
			return r != nil && r.Machine != nil && r.Machine.Spec.ProviderID == "" && ctx.Err() == nil
		}, nil, b.Cloud.DeleteMachine)
	}},
	"fails to delete what is not there": {caught: "DeleteWithoutVM DeleteTwice", breakIt: func(b *broken) {
		b.remove = recoding(b.Cloud.DeleteMachine, codes.NotFound, codes.Internal)
	}},
	"leaves the disks behind": {caught: "DeleteRemovesAll", breakIt: func(b *broken) {
		b.remove = func(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
			defer b.Inject(Fault{Operation: driver.OpDeleteMachine, Kind: Partial, Steps: 1})()
			resp, err := b.Cloud.DeleteMachine(ctx, r)
			if codes.Of(err) == codes.Unavailable {
				return &deleteResponse{}, nil
			}
			return resp, err
		}
	}},
	"only says that it deletes": {caught: "DeleteRemovesAll DeleteTwice ListAfterDelete GetAfterDelete", breakIt: func(b *broken) {
		b.remove = func(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
			_, err := b.Cloud.DeleteMachine(ctx, &deleteRequest{Machine: &v1alpha1.Machine{}, MachineClass: r.MachineClass, Secret: r.Secret})
			if codes.Of(err) != codes.InvalidArgument {
				return nil, err
			}
			return &deleteResponse{}, nil
		}
	}},
	"deletes all that it finds": {caught: "DeleteKeepsOthers", breakIt: func(b *broken) {
		b.remove = succeeding(b.Cloud.DeleteMachine, func(*deleteRequest, *deleteResponse) {
			for _, v := range b.Snapshot().VMs {
				b.Terminate(v.ProviderID)
			}
		})
	}},
	"says nothing of a deletion": {caught: "DeleteRemovesAll", breakIt: func(b *broken) { b.remove = dropping(b.Cloud.DeleteMachine) }},
	"leaves what a failed create made": {caught: "CreateAfterFailure", breakIt: func(b *broken) {
		b.remove = unless(func(ctx context.Context, r *deleteRequest) bool {
			return r != nil && r.Machine != nil && len(b.Snapshot().Of(r.Machine.Name).VMs) == 0 && ctx.Err() == nil
		}, status.Error(codes.NotFound, "there is no VM"), b.Cloud.DeleteMachine)
	}},

	// ListMachines.
	"lists the first page": {caught: "ListIsComplete", breakIt: func(b *broken) {
		b.list = answering(b.Cloud.ListMachines, func(resp *listResponse) {
			for id := range resp.MachineList {
				if len(resp.MachineList) > 2 {
					delete(resp.MachineList, id)
				}
			}
		})
	}},
	"lists VMs by their own names": {caught: "ListIsComplete", breakIt: func(b *broken) {
		b.list = answering(b.Cloud.ListMachines, func(resp *listResponse) {
			for id, name := range resp.MachineList {
				resp.MachineList[id] = "vm-" + name
			}
		})
	}},
	"lists from a cache that never forgets": {caught: "ListAfterDelete DeleteRemovesAll", breakIt: func(b *broken) {
		var mu sync.Mutex
		cache := map[string]string{}
		b.list = succeeding(b.Cloud.ListMachines, func(_ *listRequest, resp *listResponse) {
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(cache, resp.MachineList)
			resp.MachineList = maps.Clone(cache)
		})
	}},
	"lists what belongs to others": {caught: "ListStaysInScope", breakIt: func(b *broken) {
		b.list = succeeding(b.Cloud.ListMachines, func(_ *listRequest, resp *listResponse) {
			for _, v := range b.Snapshot().VMs {
				resp.MachineList[v.ProviderID] = v.Machine
			}
		})
	}},

	// DeleteSideResource.
	"deletes all side resources of a machine": {caught: "DeleteSideResourceRemovesOne", breakIt: func(b *broken) {
		b.removeSide = func(ctx context.Context, r *sideRequest) (*sideResponse, error) {
			resp, err := b.Cloud.DeleteSideResource(ctx, r)
			for _, other := range b.Snapshot().Of(r.Resource.MachineName).Leftovers() {
				_, _ = b.Cloud.DeleteSideResource(ctx, &sideRequest{Resource: other, MachineClass: r.MachineClass, Secret: r.Secret})
			}
			return resp, err
		}
	}},
	"only says that it deletes a side resource": {caught: "DeleteSideResourceRemovesOne DeleteSideResourceKeepsVMs", breakIt: func(b *broken) {
		b.removeSide = unless(nil, nil, b.Cloud.DeleteSideResource)
	}},
	"fails to delete a side resource that is gone": {caught: "DeleteSideResourceRemovesOne", breakIt: func(b *broken) {
		b.removeSide = recoding(b.Cloud.DeleteSideResource, codes.NotFound, codes.Internal)
	}},
	"takes the side resources of a VM away": {caught: "DeleteSideResourceKeepsVMs", breakIt: func(b *broken) {
		b.removeSide = failing(b.Cloud.DeleteSideResource, func(_ context.Context, r *sideRequest, err error) error {
			if codes.Of(err) == codes.FailedPrecondition {
				b.Terminate(r.Resource.ProviderID)
			}
			return err
		})
	}},

	// InitializeMachine.
	"fails to initialize twice": {caught: "InitializeCompletes", options: CloudOptions{NeedsInitialization: true}, breakIt: func(b *broken) {
		b.initialize = unless(func(ctx context.Context, r *initializeRequest) bool {
			_, err := b.GetMachineStatus(ctx, &getRequest{Machine: r.Machine, MachineClass: r.MachineClass, Secret: r.Secret})
			return err == nil
		}, status.Error(codes.FailedPrecondition, "initialized already"), b.Cloud.InitializeMachine)
	}},
	"initializes nothing": {caught: "InitializeCompletes InitializeWithoutVM", options: CloudOptions{NeedsInitialization: true}, breakIt: func(b *broken) {
		b.initialize = unless(nil, nil, b.Cloud.InitializeMachine)
	}},
	"initializes under another identity": {caught: "InitializeCompletes", options: CloudOptions{NeedsInitialization: true}, breakIt: func(b *broken) {
		b.initialize = answering(b.Cloud.InitializeMachine, func(resp *initializeResponse) { resp.ProviderID = "another" })
	}},
	"is Uninitialized for ever": {caught: "UninitializedHasIdentity", options: CloudOptions{NeedsInitialization: true}, breakIt: func(b *broken) {
		b.initialize = unless(nil, status.Error(codes.Unimplemented, "not here"), b.Cloud.InitializeMachine)
	}},

	// GetVolumeIDs.
	"chokes on volumes of others": {caught: "VolumesOfOtherSystems InvalidRequest", breakIt: func(b *broken) {
		b.volumes = func(_ context.Context, r *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
			resp := &driver.GetVolumeIDsResponse{}
			for _, s := range r.PVSpecs {
				resp.VolumeIDs = append(resp.VolumeIDs, s.CSI.VolumeHandle)
			}
			return resp, nil
		}
	}},
	"sorts the volumes": {caught: "VolumesInOrder", breakIt: func(b *broken) {
		b.volumes = answering(b.Cloud.GetVolumeIDs, func(resp *driver.GetVolumeIDsResponse) { slices.Sort(resp.VolumeIDs); slices.Reverse(resp.VolumeIDs) })
	}},
	"finds no volume": {caught: "VolumesInOrder", breakIt: func(b *broken) { b.volumes = unless(nil, nil, b.Cloud.GetVolumeIDs) }},

	// Requests and errors.
	"serves classes of every provider": {caught: "WrongProvider", breakIt: func(b *broken) {
		b.list = func(ctx context.Context, r *listRequest) (*listResponse, error) {
			if r != nil && r.MachineClass != nil {
				r = &listRequest{MachineClass: r.MachineClass.DeepCopy(), Secret: r.Secret}
				r.MachineClass.Provider = "simulated"
			}
			return b.Cloud.ListMachines(ctx, r)
		}
	}},
	"panics without a Secret": {caught: "InvalidRequest", breakIt: func(b *broken) {
		b.list = func(ctx context.Context, r *listRequest) (*listResponse, error) {
			_ = r.Secret.Data["credential"]
			return b.Cloud.ListMachines(ctx, r)
		}
	}},
	"prints its request in errors": {caught: "SecretsStaySecret", breakIt: func(b *broken) {
		b.list = failing(b.Cloud.ListMachines, func(_ context.Context, r *listRequest, err error) error {
			text, _ := json.Marshal(r) //nolint:errchkjson // whatever comes out is what leaks
			return status.WrapError(codes.Of(err), "bad request: "+string(text), err)
		})
	}},
	"quotes the user data in errors": {caught: "SecretsStaySecret", breakIt: func(b *broken) {
		b.create = failing(b.Cloud.CreateMachine, func(_ context.Context, r *createRequest, err error) error {
			if r == nil || r.Secret == nil {
				return err
			}
			return status.WrapError(codes.Of(err), "cannot use "+string(r.Secret.Data["userData"]), err)
		})
	}},
	"renders the user data in the request": {caught: "RequestsAreUnchanged", breakIt: func(b *broken) {
		b.create = succeeding(b.Cloud.CreateMachine, func(r *createRequest, _ *createResponse) { r.Secret.Data["userData"] = []byte("rendered") })
	}},

	// Contexts that have ended.
	"ignores its context": {caught: "EndedContext", options: slow(), breakIt: func(b *broken) {
		b.create = func(ctx context.Context, r *createRequest) (*createResponse, error) {
			return b.Cloud.CreateMachine(context.WithoutCancel(ctx), r)
		}
	}},
	"answers long after its context has ended": {caught: "EndedContext CanceledCreate", breakIt: func(b *broken) {
		b.create = func(ctx context.Context, r *createRequest) (*createResponse, error) {
			time.Sleep(10 * time.Minute) // of the bubble
			return b.Cloud.CreateMachine(ctx, r)
		}
	}},
	"calls the end of its context Internal": {caught: "EndedContext CanceledCreate", options: slow(), breakIt: func(b *broken) {
		b.create = failing(b.Cloud.CreateMachine, func(ctx context.Context, _ *createRequest, err error) error {
			if ctx.Err() == nil {
				return err
			}
			return status.WrapError(codes.Internal, "failed", err)
		})
	}},
	"makes a VM in the background when it is cut off": {caught: "EndedContext CanceledCreate", options: slow(), breakIt: func(b *broken) {
		b.create = failing(b.Cloud.CreateMachine, func(ctx context.Context, r *createRequest, err error) error {
			if ctx.Err() != nil && r != nil {
				b.another(r.Machine)
			}
			return err
		})
	}},
}

// rememberInMemory makes CreateMachine adopt only what the same process made.
func rememberInMemory(b *broken) {
	var mu sync.Mutex
	made := map[string]*createResponse{}
	b.create = func(ctx context.Context, r *createRequest) (*createResponse, error) {
		if r == nil || r.Machine == nil || ctx.Err() != nil {
			return b.Cloud.CreateMachine(ctx, r)
		}
		mu.Lock()
		defer mu.Unlock()
		if resp := made[r.Machine.Name]; resp != nil {
			return resp, nil
		}
		resp, err := b.Cloud.CreateMachine(ctx, r)
		if err != nil {
			return resp, err
		}
		if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
			resp.ProviderID = b.another(r.Machine)
		}
		made[r.Machine.Name] = resp
		return resp, nil
	}
}
