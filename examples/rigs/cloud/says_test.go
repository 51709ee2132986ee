// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// says is a driver that records requests and returns the given responses.
type says struct {
	create     func(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error)
	initialize func(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error)
	delete     func(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error)
	status     func(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error)
	list       func(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error)
	volumes    func(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error)
}

func (s says) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return s.create(ctx, req)
}

func (s says) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return s.initialize(ctx, req)
}

func (s says) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return s.delete(ctx, req)
}

func (s says) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return s.status(ctx, req)
}

func (s says) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return s.list(ctx, req)
}

func (s says) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return s.volumes(ctx, req)
}

// failing is a driver that answers GetMachineStatus with an error.
func failing(err error) driver.Driver {
	return says{status: func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
		return nil, err
	}}
}

func machineNamed(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}}
}

func secretWith(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}, Data: data}
}
