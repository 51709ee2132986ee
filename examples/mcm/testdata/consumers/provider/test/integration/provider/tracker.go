// SPDX-License-Identifier: Apache-2.0

// Package provider finds the servers that the integration test has left.
package provider

import (
	"context"
	"fmt"
	"os"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"

	"example.com/machine-controller-manager-provider-acme/pkg/acme"
)

// ResourcesTrackerImpl lists the servers of a class.
type ResourcesTrackerImpl struct {
	driver  driver.Driver
	request driver.ListMachinesRequest
}

// InitializeResourcesTracker fails if there are servers already.
func (r *ResourcesTrackerImpl) InitializeResourcesTracker(class *v1alpha1.MachineClass, secretData map[string][]byte, _ string) error {
	var err error
	if r.driver, err = acme.Dial(os.Getenv("ACME_URL")); err != nil {
		return err
	}
	r.request = driver.ListMachinesRequest{MachineClass: class, Secret: &corev1.Secret{Data: secretData}}
	servers, err := r.driver.ListMachines(context.Background(), &r.request)
	if err == nil && len(servers.MachineList) > 0 {
		err = fmt.Errorf("orphaned servers: %v", servers.MachineList)
	}
	return err
}

// IsOrphanedResourcesAvailable reports whether there are servers.
func (r *ResourcesTrackerImpl) IsOrphanedResourcesAvailable() bool {
	servers, err := r.driver.ListMachines(context.Background(), &r.request)
	return err != nil || len(servers.MachineList) > 0
}
