// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// broken is a driver with one error. Its methods call the fields, which are those of the cloud at first.
type broken struct {
	*Cloud
	create     method[createRequest, createResponse]
	initialize method[initializeRequest, initializeResponse]
	remove     method[deleteRequest, deleteResponse]
	get        method[getRequest, getResponse]
	list       method[listRequest, listResponse]
	volumes    method[volumesRequest, volumesResponse]
	removeSide method[sideRequest, sideResponse]
	processes  int // calls of Harness.New
}

// method is a method of a driver.
type method[Q, R any] func(context.Context, *Q) (*R, error)

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
	volumesRequest     = driver.GetVolumeIDsRequest
	volumesResponse    = driver.GetVolumeIDsResponse
	sideRequest        = driver.DeleteSideResourceRequest
	sideResponse       = driver.DeleteSideResourceResponse
)

func newBroken(breakIt func(*broken)) *broken {
	c := NewCloud(CloudOptions{})
	b := &broken{
		Cloud: c, create: c.CreateMachine, initialize: c.InitializeMachine, remove: c.DeleteMachine,
		get: c.GetMachineStatus, list: c.ListMachines, volumes: c.GetVolumeIDs, removeSide: c.DeleteSideResource,
	}
	breakIt(b)
	return b
}

func (b *broken) CreateMachine(ctx context.Context, r *createRequest) (*createResponse, error) {
	return b.create(ctx, r)
}

func (b *broken) InitializeMachine(ctx context.Context, r *initializeRequest) (*initializeResponse, error) {
	return b.initialize(ctx, r)
}

func (b *broken) DeleteMachine(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
	return b.remove(ctx, r)
}

func (b *broken) GetMachineStatus(ctx context.Context, r *getRequest) (*getResponse, error) {
	return b.get(ctx, r)
}

func (b *broken) ListMachines(ctx context.Context, r *listRequest) (*listResponse, error) {
	return b.list(ctx, r)
}

func (b *broken) GetVolumeIDs(ctx context.Context, r *volumesRequest) (*volumesResponse, error) {
	return b.volumes(ctx, r)
}

func (b *broken) DeleteSideResource(ctx context.Context, r *sideRequest) (*sideResponse, error) {
	return b.removeSide(ctx, r)
}

// Harness returns the harness of the cloud with the broken driver.
func (b *broken) Harness() Harness {
	h := b.Cloud.Harness()
	h.New = func() driver.Driver {
		b.processes++
		return b
	}
	return h
}

// another makes one more VM of a machine, and returns its provider ID.
func (b *broken) another(m *v1alpha1.Machine) string {
	return b.AddVM(VM{Namespace: m.Namespace, Machine: m.Name, UID: string(m.UID)}).ProviderID
}

// vms returns the number of VMs of a machine.
func (b *broken) vms(m *v1alpha1.Machine) int { return len(b.Snapshot().Of(m.Name).VMs) }

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
func failing[Q, R any](call method[Q, R], edit func(*Q, error) error) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		resp, err := call(ctx, q)
		if err != nil {
			err = edit(q, err)
		}
		return resp, err
	}
}

// recoding returns a method that replaces a code by another one.
func recoding[Q, R any](call method[Q, R], from, to codes.Code) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		if resp, err := call(ctx, q); codes.Of(err) != from {
			return resp, err
		}
		return only[R](to)
	}
}

// replying returns a method that makes no call when a condition holds, and returns a code. Nil means always.
func replying[Q, R any](call method[Q, R], code codes.Code, when func(*Q) bool) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		if when != nil && !when(q) {
			return call(ctx, q)
		}
		return only[R](code)
	}
}

// only returns an empty response for OK, and otherwise an error without a response.
func only[R any](code codes.Code) (*R, error) {
	if code == codes.OK {
		return new(R), nil
	}
	return nil, status.Error(code, "of a broken driver")
}

// flaws are the errors of drivers that the kit must report, by the promises whose checks must fail.
var flaws = map[string]struct {
	caught  string
	breakIt func(b *broken)
}{
	// CreateMachine.
	"searches a VM where a new one is not shown yet": {
		"CreateTwice CreateByAnotherProcess CreateConcurrently CreateWithNewUID",
		func(b *broken) { b.options = CloudOptions{Lag: 10 * time.Second, ForgetfulCreate: true} },
	},
	"finds only the VMs of its own process": {"CreateByAnotherProcess", func(b *broken) {
		b.create = succeeding(b.create, func(r *createRequest, resp *createResponse) {
			if b.processes > 1 {
				resp.ProviderID = b.another(r.Machine)
			}
		})
	}},
	"finds a VM by the UID": {"CreateWithNewUID", func(b *broken) {
		b.create = succeeding(b.create, func(r *createRequest, resp *createResponse) {
			if b.Snapshot().VMs[0].UID != string(r.Machine.UID) {
				resp.ProviderID = b.another(r.Machine)
			}
		})
	}},
	"returns no node name": {"CreateReturnsIdentity", func(b *broken) {
		b.create = succeeding(b.create, func(_ *createRequest, resp *createResponse) { resp.NodeName = "" })
	}},
	"returns no provider ID": {"CreateReturnsIdentity", func(b *broken) {
		b.create = succeeding(b.create, func(_ *createRequest, resp *createResponse) { resp.ProviderID = "" })
	}},
	"makes a second VM and returns the first": {"CreateTwice", func(b *broken) {
		b.create = succeeding(b.create, func(r *createRequest, _ *createResponse) {
			if b.Calls(driver.OpCreateMachine, codes.OK) == 2 {
				b.another(r.Machine)
			}
		})
	}},
	"returns another provider ID for the same VM": {"CreateTwice", func(b *broken) {
		b.create = succeeding(b.create, func(_ *createRequest, resp *createResponse) {
			if b.Calls(driver.OpCreateMachine, codes.OK) > 1 {
				resp.ProviderID += "-again"
			}
		})
	}},
	"returns another node name every time": {"CreateTwice GetFindsByName", func(b *broken) {
		b.create = succeeding(b.create, func(_ *createRequest, resp *createResponse) {
			resp.NodeName = fmt.Sprintf("ip-10-0-0-%d", b.Calls(driver.OpCreateMachine, codes.OK))
		})
	}},
	"returns one ID for all VMs": {"IdentityIsStable", func(b *broken) {
		b.create = succeeding(b.create, func(_ *createRequest, resp *createResponse) { resp.ProviderID = "the-vm" })
	}},
	"reports an existing VM as an error": {"CreateTwice CreateConcurrently RequestsAreUnchanged", func(b *broken) {
		b.create = replying(b.create, codes.AlreadyExists, func(r *createRequest) bool { return b.vms(r.Machine) > 0 })
	}},

	// GetMachineStatus.
	"has the code only in the text": {"GetWithoutVM GetAfterDelete ErrorsHaveCodes", func(b *broken) {
		b.get = failing(b.get, func(_ *getRequest, err error) error { return errors.New(err.Error()) })
	}},
	"finds nothing without a provider ID": {"GetFindsByName", func(b *broken) {
		b.get = replying(b.get, codes.NotFound, func(r *getRequest) bool { return r.Machine.Spec.ProviderID == "" })
	}},
	"finds nothing with a provider ID": {"GetFindsByProviderID", func(b *broken) {
		b.get = replying(b.get, codes.NotFound, func(r *getRequest) bool { return r.Machine.Spec.ProviderID != "" })
	}},
	"finds a VM that does not exist": {"GetWithoutVM GetAfterDelete DeleteRemovesAll", func(b *broken) {
		b.get = recoding(b.get, codes.NotFound, codes.OK)
	}},
	"returns another ID from the second time on": {"IdentityIsStable", func(b *broken) {
		b.get = succeeding(b.get, func(_ *getRequest, resp *getResponse) {
			if b.Calls(driver.OpGetMachineStatus, codes.OK) > 1 {
				resp.ProviderID += "-again"
			}
		})
	}},
	"returns Uninitialized without a response": {"UninitializedHasIdentity", func(b *broken) {
		b.options.NeedsInitialization = true
		b.get = recoding(b.get, codes.Uninitialized, codes.Uninitialized)
	}},

	// DeleteMachine.
	"does nothing without a provider ID": {"DeleteFindsByName CreateAfterFailure", func(b *broken) {
		b.remove = replying(b.remove, codes.OK, func(r *deleteRequest) bool { return r.Machine.Spec.ProviderID == "" })
	}},
	"fails to delete without a VM": {"DeleteWithoutVM DeleteTwice", func(b *broken) {
		b.remove = recoding(b.remove, codes.NotFound, codes.Internal)
	}},
	"leaves the disks": {"DeleteRemovesAll", func(b *broken) {
		b.Inject(Fault{Operation: driver.OpDeleteMachine, Kind: Partial, Steps: 1})
		b.remove = recoding(b.remove, codes.Unavailable, codes.OK)
	}},
	"deletes nothing": {"DeleteRemovesAll DeleteTwice ListAfterDelete GetAfterDelete", func(b *broken) {
		b.remove = replying(b.remove, codes.OK, nil)
	}},
	"returns neither a response nor an error": {"DeleteRemovesAll", func(b *broken) {
		b.remove = func(ctx context.Context, r *deleteRequest) (*deleteResponse, error) {
			_, err := b.Cloud.DeleteMachine(ctx, r)
			return nil, err
		}
	}},
	"deletes all VMs": {"DeleteKeepsOthers", func(b *broken) {
		b.remove = succeeding(b.remove, func(*deleteRequest, *deleteResponse) {
			for _, v := range b.Snapshot().VMs {
				b.Terminate(v.ProviderID)
			}
		})
	}},
	"leaves what a failed create made": {"CreateAfterFailure", func(b *broken) {
		b.remove = replying(b.remove, codes.NotFound, func(r *deleteRequest) bool { return b.vms(r.Machine) == 0 })
	}},

	// ListMachines.
	"lists the first page": {"ListIsComplete", func(b *broken) {
		b.list = succeeding(b.list, func(_ *listRequest, resp *listResponse) {
			maps.DeleteFunc(resp.MachineList, func(string, string) bool { return len(resp.MachineList) > 2 })
		})
	}},
	"lists VMs by their own names": {"ListIsComplete", func(b *broken) {
		b.list = succeeding(b.list, func(_ *listRequest, resp *listResponse) {
			for id, name := range resp.MachineList {
				resp.MachineList[id] = "vm-" + name
			}
		})
	}},
	"lists the deleted VMs of all scopes": {"ListAfterDelete DeleteRemovesAll ListStaysInScope", func(b *broken) {
		b.list = succeeding(b.list, func(_ *listRequest, resp *listResponse) {
			for _, e := range b.History() {
				resp.MachineList[e.VM.ProviderID] = e.VM.Machine
			}
		})
	}},

	// DeleteSideResource.
	"deletes all side resources of a machine": {"DeleteSideResourceRemovesOne", func(b *broken) {
		b.removeSide = func(ctx context.Context, r *sideRequest) (*sideResponse, error) {
			for _, other := range b.Snapshot().Of(r.Resource.MachineName).Leftovers() {
				q := &sideRequest{Resource: other, MachineClass: r.MachineClass, Secret: r.Secret}
				_, _ = b.Cloud.DeleteSideResource(ctx, q)
			}
			return b.Cloud.DeleteSideResource(ctx, r)
		}
	}},
	"deletes no side resource": {"DeleteSideResourceRemovesOne DeleteSideResourceKeepsVMs", func(b *broken) {
		b.removeSide = replying(b.removeSide, codes.OK, nil)
	}},
	"fails to delete a side resource twice": {"DeleteSideResourceRemovesOne", func(b *broken) {
		b.removeSide = recoding(b.removeSide, codes.NotFound, codes.Internal)
	}},
	"deletes a side resource with its VM": {"DeleteSideResourceKeepsVMs", func(b *broken) {
		b.removeSide = failing(b.removeSide, func(r *sideRequest, err error) error {
			b.Terminate(r.Resource.ProviderID)
			return err
		})
	}},

	// InitializeMachine.
	"fails to initialize twice": {"InitializeCompletes", func(b *broken) {
		b.options.NeedsInitialization = true
		b.initialize = replying(b.initialize, codes.FailedPrecondition, func(*initializeRequest) bool {
			return b.Calls(driver.OpInitializeMachine, codes.OK) > 0
		})
	}},
	"initializes nothing": {"InitializeWithoutVM", func(b *broken) {
		b.initialize = replying(b.initialize, codes.OK, nil)
	}},
	"initializes under another identity": {"InitializeCompletes", func(b *broken) {
		b.options.NeedsInitialization = true
		b.initialize = succeeding(b.initialize, func(_ *initializeRequest, resp *initializeResponse) {
			resp.ProviderID = "another"
		})
	}},
	"is Uninitialized for ever": {"UninitializedHasIdentity", func(b *broken) {
		b.options.NeedsInitialization = true
		b.initialize = replying(b.initialize, codes.Unimplemented, nil)
	}},

	// GetVolumeIDs.
	"panics for volumes of other systems": {"VolumesOfOtherSystems InvalidRequest", func(b *broken) {
		b.volumes = func(_ context.Context, r *volumesRequest) (*volumesResponse, error) {
			resp := &volumesResponse{}
			for _, s := range r.PVSpecs {
				resp.VolumeIDs = append(resp.VolumeIDs, s.CSI.VolumeHandle)
			}
			return resp, nil
		}
	}},
	"returns sorted volumes": {"VolumesInOrder", func(b *broken) {
		b.volumes = succeeding(b.volumes, func(_ *volumesRequest, resp *volumesResponse) {
			slices.Sort(resp.VolumeIDs)
			slices.Reverse(resp.VolumeIDs)
		})
	}},

	// Requests and errors.
	"accepts every request": {"WrongProvider InvalidRequest", func(b *broken) {
		b.list = recoding(b.list, codes.InvalidArgument, codes.OK)
	}},
	"prints its request in errors": {"SecretsStaySecret", func(b *broken) {
		b.list = failing(b.list, func(r *listRequest, err error) error {
			text, _ := json.Marshal(r) //nolint:errchkjson // whatever comes out is what leaks
			return status.WrapError(codes.Of(err), "bad request: "+string(text), err)
		})
	}},
	"prints the user data in errors": {"SecretsStaySecret", func(b *broken) {
		b.create = failing(b.create, func(r *createRequest, err error) error { // panics for a nil request
			return status.WrapError(codes.Of(err), "cannot use "+string(r.Secret.Data["userData"]), err)
		})
	}},
	"renders the user data in the request": {"RequestsAreUnchanged", func(b *broken) {
		b.create = succeeding(b.create, func(r *createRequest, _ *createResponse) {
			r.Secret.Data["userData"] = []byte("rendered")
		})
	}},

	// Contexts that have ended.
	"ignores its context": {"EndedContext", func(b *broken) {
		b.get = recoding(b.get, codes.Canceled, codes.OK)
	}},
	"returns long after the end of its context": {"EndedContext CanceledCreate", func(b *broken) {
		b.create = func(ctx context.Context, r *createRequest) (*createResponse, error) {
			time.Sleep(10 * time.Minute) // of the bubble
			return b.Cloud.CreateMachine(ctx, r)
		}
	}},
	"calls the end of its context Internal": {"EndedContext CanceledCreate", func(b *broken) {
		b.options = slow()
		b.create = recoding(b.create, codes.Canceled, codes.Internal)
	}},
	"makes a VM after the end of its context": {"EndedContext CanceledCreate", func(b *broken) {
		b.options = slow()
		b.create = failing(b.create, func(r *createRequest, err error) error {
			b.another(r.Machine)
			return err
		})
	}},
}
