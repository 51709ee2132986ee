// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
)

// GenerateMachineClassForMigration has the signature that drivers of providers still have.
func (provider) GenerateMachineClassForMigration(_ context.Context, req *driver.GenerateMachineClassForMigrationRequest) (*driver.GenerateMachineClassForMigrationResponse, error) {
	var (
		_ any                    = req.ProviderSpecificMachineClass
		_ *v1alpha1.MachineClass = req.MachineClass
		_ *v1alpha1.ClassSpec    = req.ClassSpec
	)
	return &driver.GenerateMachineClassForMigrationResponse{}, nil
}
