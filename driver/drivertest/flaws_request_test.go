// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"encoding/json"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// requestFlaws are the flaws of requests and errors.
var requestFlaws = map[string]flaw{
	"serves classes of every provider": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				if r != nil && r.MachineClass != nil {
					class := r.MachineClass.DeepCopy()
					class.Provider = "simulated"
					r = &driver.ListMachinesRequest{MachineClass: class, Secret: r.Secret}
				}
				return b.Cloud.ListMachines(ctx, r)
			}
		},
		caught: []string{"WrongProvider"},
	},
	"panics without a Secret": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				_ = r.Secret.Data["credential"]
				return b.Cloud.ListMachines(ctx, r)
			}
		},
		caught: []string{"InvalidRequest"},
	},
	"prints its request in errors": {
		breakIt: func(b *broken) {
			b.list = func(ctx context.Context, r *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
				resp, err := b.Cloud.ListMachines(ctx, r)
				if err != nil && r != nil {
					text, _ := json.Marshal(r) //nolint:errchkjson // whatever comes out is what leaks
					err = status.WrapError(codes.Of(err), "bad request: "+string(text), err)
				}
				return resp, err
			}
		},
		caught: []string{"SecretsStaySecret"},
	},
	"quotes the user data in errors": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err != nil && r != nil && r.Secret != nil {
					err = status.WrapError(codes.Of(err), "cannot use "+string(r.Secret.Data["userData"]), err)
				}
				return resp, err
			}
		},
		caught: []string{"SecretsStaySecret"},
	},
	"renders the user data in the request": {
		breakIt: func(b *broken) {
			b.create = func(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				resp, err := b.Cloud.CreateMachine(ctx, r)
				if err == nil {
					r.Secret.Data["userData"] = []byte("rendered")
				}
				return resp, err
			}
		},
		caught: []string{"RequestsAreUnchanged"},
	},
}
