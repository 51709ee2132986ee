// SPDX-License-Identifier: Apache-2.0

// Package acme is the driver for the Acme cloud, which has an HTTP API for servers.
package acme

import (
	"context"
	"net/http"
	"strings"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Driver implements driver.Driver. It has no state except connections. It is safe for use by
// multiple goroutines.
type Driver struct{ http *http.Client }

var _ driver.Driver = (*Driver)(nil)

// NewDriver returns a driver. The controllers set the deadlines of its calls.
func NewDriver() *Driver { return &Driver{http: &http.Client{}} }

// prefix is the beginning of every provider ID.
const prefix = "acme:///"

// providerID returns the provider ID of a server: prefix, project and ID.
func providerID(spec ProviderSpec, id string) string { return prefix + spec.Project + "/" + id }

// serverID returns the server ID in the provider ID of a machine, which may be empty. A provider
// ID of another project is invalid and not NotFound, because the server may exist there.
func serverID(spec ProviderSpec, m *v1alpha1.Machine) (string, error) {
	if m.Spec.ProviderID == "" {
		return "", nil
	}
	id, found := strings.CutPrefix(m.Spec.ProviderID, prefix+spec.Project+"/")
	if !found || strings.Trim(id, ".") == "" || strings.ContainsAny(id, "/%") {
		return "", status.Error(codes.InvalidArgument, "provider ID "+m.Spec.ProviderID+" does not belong to project "+spec.Project)
	}
	return id, nil
}

// open checks a request and returns the client for it.
func (d *Driver) open(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) (*client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec, err := specOf(class, secret)
	if err != nil {
		return nil, err
	}
	return &client{http: d.http, spec: spec, token: string(secret.Data[TokenKey])}, nil
}

var errNoMachine = status.Error(codes.InvalidArgument, "the request has no machine")

// CreateMachine implements driver.Driver. Names of servers are unique in a project, so two calls
// for one machine create one server.
func (d *Driver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if req == nil || req.Machine == nil {
		return nil, errNoMachine
	}
	c, err := d.open(ctx, req.MachineClass, req.Secret)
	if err != nil {
		return nil, err
	}
	made, err := c.create(ctx, server{
		Name: req.Machine.Name, Type: c.spec.ServerType, Image: c.spec.Image, UserData: string(req.Secret.Data[UserDataKey]),
	})
	if codes.Of(err) == codes.AlreadyExists {
		made, err = c.byName(ctx, req.Machine.Name)
		if codes.Of(err) == codes.NotFound {
			err = status.Error(codes.Aborted, "server "+req.Machine.Name+" is being deleted, or belongs to another cluster than "+c.spec.Cluster)
		}
	}
	if err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(c.spec, made.ID), NodeName: made.Name, Addresses: addresses(made)}, nil
}

// InitializeMachine implements driver.Driver. Servers need no initialization.
func (d *Driver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "servers need no initialization")
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if req == nil || req.Machine == nil {
		return nil, errNoMachine
	}
	c, err := d.open(ctx, req.MachineClass, req.Secret)
	if err != nil {
		return nil, err
	}
	s, err := find(ctx, c, req.Machine)
	if err != nil {
		return nil, err
	}
	return &driver.GetMachineStatusResponse{ProviderID: providerID(c.spec, s.ID), NodeName: s.Name, Addresses: addresses(s)}, nil
}

// find returns the server of a machine by its provider ID, or by its name without one.
func find(ctx context.Context, c *client, m *v1alpha1.Machine) (server, error) {
	id, err := serverID(c.spec, m)
	switch {
	case err != nil:
		return server{}, err
	case id != "":
		return c.byID(ctx, id)
	default:
		return c.byName(ctx, m.Name)
	}
}

// DeleteMachine implements driver.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if req == nil || req.Machine == nil {
		return nil, errNoMachine
	}
	c, err := d.open(ctx, req.MachineClass, req.Secret)
	if err != nil {
		return nil, err
	}
	s, err := find(ctx, c, req.Machine)
	if err != nil {
		return nil, err
	}
	if err := c.remove(ctx, s.ID); err != nil {
		return nil, err
	}
	return &driver.DeleteMachineResponse{}, nil
}

// ListMachines implements driver.Driver. The scope of a class is its cluster in its project.
func (d *Driver) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if req == nil {
		return nil, status.Error(codes.InvalidArgument, "the request is nil")
	}
	c, err := d.open(ctx, req.MachineClass, req.Secret)
	if err != nil {
		return nil, err
	}
	all, err := c.list(ctx, nil)
	if err != nil {
		return nil, err
	}
	list := make(map[string]string, len(all))
	for _, s := range all {
		list[providerID(c.spec, s.ID)] = s.Name
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

// GetVolumeIDs implements driver.Driver. Volumes of this cloud need no translation.
func (d *Driver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return nil, status.Error(codes.Unimplemented, "volumes need no translation")
}

func addresses(s server) []corev1.NodeAddress {
	if s.Address == "" {
		return nil
	}
	return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.Address}}
}
