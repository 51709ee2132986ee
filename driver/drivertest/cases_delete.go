// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func deleteCases() []promise {
	return []promise{
		{"DeleteRemovesAll", "DeleteMachine deletes the VM of a machine with all its side resources.", deleteAs((*v1alpha1.Machine).DeepCopy), needsAll},
		{"DeleteFindsByName", "DeleteMachine deletes everything with the name of the machine if its ProviderID is empty, because the response of CreateMachine may have been lost.", deleteAs(unnamed), needsAll},
		{"DeleteWithoutVM", "DeleteMachine returns NotFound or no error if nothing of the machine exists.", deleteWithoutVM, nil},
		{"DeleteTwice", "DeleteMachine may be called twice.", withShownVM(deleteTwice), needsAll},
		{"DeleteKeepsOthers", "DeleteMachine deletes the VM of the machine and no other VM.", withShownVM(deleteKeepsOthers), needsAll},
	}
}

// nothing checks that eventually no VM and no side resource of m exists.
func nothing(ctx context.Context, e *env, m *v1alpha1.Machine) error {
	return e.Eventually(ctx, func() error {
		ids, err := e.Owned(ctx, m)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			return fmt.Errorf("ListMachines still returns the deleted VMs %q", ids)
		}
		if err := absent(ctx, e, unnamed(m)); err != nil && !errors.Is(err, errNotChecked) {
			return err
		}
		return noSides(ctx, e, m)
	})
}

// noSides checks that m has no side resources, if the driver lists them.
func noSides(ctx context.Context, e *env, m *v1alpha1.Machine) error {
	lister, ok := driver.As[driver.SideResourceLister](e.Driver)
	if !ok {
		return nil
	}
	resp, err := ask(ctx, lister.ListSideResources, &driver.ListSideResourcesRequest{MachineClass: e.Class(), Secret: e.Secret()})
	if err != nil {
		return fmt.Errorf("ListSideResources: %w", err)
	}
	for _, r := range resp.Resources {
		if r.MachineName == m.Name {
			return fmt.Errorf("%s %q of a deleted machine still exists", r.Kind, r.ID)
		}
	}
	return nil
}

// deleteAs returns a check that deletes a VM with the machine in the given form.
func deleteAs(form func(*v1alpha1.Machine) *v1alpha1.Machine) func(context.Context, *env) error {
	return withShownVM(func(ctx context.Context, e *env, m *v1alpha1.Machine, _ *driver.CreateMachineResponse) error {
		if err := e.Delete(ctx, form(m)); err != nil {
			return fmt.Errorf("DeleteMachine: %w", err)
		}
		return nothing(ctx, e, m)
	})
}

func deleteWithoutVM(ctx context.Context, e *env) error {
	if err := e.Delete(ctx, e.Machine()); err != nil {
		return fmt.Errorf("DeleteMachine of a machine that never had a VM: %w", err)
	}
	return nil
}

func deleteTwice(ctx context.Context, e *env, m *v1alpha1.Machine, _ *driver.CreateMachineResponse) error {
	for _, nth := range []string{"first", "second"} {
		if err := e.Delete(ctx, m); err != nil {
			return fmt.Errorf("the %s DeleteMachine: %w", nth, err)
		}
	}
	if err := nothing(ctx, e, m); err != nil {
		return err
	}
	for _, m := range []*v1alpha1.Machine{m, unnamed(m)} {
		if err := e.Delete(ctx, m); err != nil {
			return fmt.Errorf("DeleteMachine of a deleted VM: %w", err)
		}
	}
	return nil
}

func deleteKeepsOthers(ctx context.Context, e *env, stays *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	gone, _, err := create(ctx, e)
	if err != nil {
		return err
	}
	if err := e.Delete(ctx, gone); err != nil {
		return fmt.Errorf("DeleteMachine: %w", err)
	}
	if err := nothing(ctx, e, gone); err != nil {
		return err
	}
	return onlyVM(ctx, e, stays, resp.ProviderID)
}
