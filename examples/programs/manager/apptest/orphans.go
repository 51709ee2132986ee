// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// findResources reads what is in the cloud before the first machine.
func (s *Suite) findResources(ctx context.Context) error {
	found, err := s.o.Orphans(ctx, s.class(ClassName), s.secret.DeepCopy())
	s.resources = setOf(found)
	if err != nil {
		return fmt.Errorf("the resources in the cloud: %w", err)
	}
	return nil
}

// noOrphans waits until the cloud has only what it had before the first machine.
func (s *Suite) noOrphans(ctx context.Context) error {
	return s.wait(ctx, "the deletion of all resources in the cloud", func(ctx context.Context) (string, error) {
		found, err := s.o.Orphans(ctx, s.class(ClassName), s.secret.DeepCopy())
		if err != nil {
			return "", err
		}
		left := slices.DeleteFunc(slices.Clone(found), func(name string) bool { return s.resources[name] })
		if len(left) == 0 {
			return "", nil
		}
		return "orphaned: " + strings.Join(left, ", "), nil
	})
}

// listed returns a function that lists the VMs and side resources of a driver.
func listed(d driver.Driver) func(context.Context, *v1alpha1.MachineClass, *corev1.Secret) ([]string, error) {
	return func(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) ([]string, error) {
		vms, err := d.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class, Secret: secret})
		if err != nil || vms == nil {
			return nil, cmp.Or(err, errNoResponse)
		}
		names := slices.Sorted(maps.Keys(vms.MachineList))
		sides, ok := driver.As[driver.SideResourceLister](d)
		if !ok {
			return names, nil
		}
		list, err := sides.ListSideResources(ctx, &driver.ListSideResourcesRequest{MachineClass: class, Secret: secret})
		if codes.Of(err) == codes.Unimplemented {
			return names, nil
		}
		if err != nil || list == nil {
			return nil, cmp.Or(err, errNoResponse)
		}
		for _, side := range list.Resources {
			names = append(names, side.Kind+" "+side.ID)
		}
		return names, nil
	}
}

// errNoResponse means that a driver returned neither a list nor an error.
var errNoResponse = errors.New("the driver lists nothing, and returns no error")
