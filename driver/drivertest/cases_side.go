// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func sideCases() []promise {
	return []promise{
		{"DeleteSideResourceRemovesOne", "DeleteSideResource deletes the one side resource that the request names, and no other. To repeat a call is harmless.", deleteSideRemovesOne},
		{"DeleteSideResourceSparesVMs", "DeleteSideResource: a side resource that belongs to an existing VM is not deleted: the error is FailedPrecondition.", withShownVM(deleteSideSparesVMs)},
	}
}

// sideDeleter returns the optional interface of the driver, or an error that wraps
// errNotOffered.
func sideDeleter(e *env) (driver.SideResourceDeleter, error) {
	d, ok := driver.As[driver.SideResourceDeleter](e.Driver)
	if !ok {
		return nil, fmt.Errorf("the driver is no SideResourceDeleter: %w", errNotOffered)
	}
	return d, nil
}

// sidesOfMachine returns the side resources that are listed under the name of m.
func sidesOfMachine(ctx context.Context, e *env, d driver.SideResourceDeleter, m *v1alpha1.Machine) (out []driver.SideResource, err error) {
	resp, err := ask(ctx, d.ListSideResources, &driver.ListSideResourcesRequest{MachineClass: e.Class(), Secret: e.Secret()})
	if codes.Of(err) == codes.Unimplemented {
		return nil, fmt.Errorf("ListSideResources is Unimplemented: %w", errNotOffered)
	}
	if err != nil {
		return nil, fmt.Errorf("ListSideResources: %w", err)
	}
	for _, r := range resp.Resources {
		if r.MachineName == m.Name {
			out = append(out, r)
		}
	}
	return out, nil
}

// deleteSide calls DeleteSideResource. Unimplemented becomes errNotOffered.
func deleteSide(ctx context.Context, e *env, d driver.SideResourceDeleter, r driver.SideResource) error {
	_, err := ask(ctx, d.DeleteSideResource, &driver.DeleteSideResourceRequest{Resource: r, MachineClass: e.Class(), Secret: e.Secret()})
	if codes.Of(err) == codes.Unimplemented {
		return fmt.Errorf("DeleteSideResource is Unimplemented: %w", errNotOffered)
	}
	return err
}

func deleteSideRemovesOne(ctx context.Context, e *env) error {
	d, err := sideDeleter(e)
	if err != nil {
		return err
	}
	if e.Harness.FailCreate == nil {
		return fmt.Errorf("the harness has no FailCreate: %w", errNotOffered)
	}
	m := e.Machine()
	e.Harness.FailCreate(m.Name)
	if _, err := e.Create(ctx, m); err == nil {
		return errors.New("drivertest: FailCreate of the harness did not make CreateMachine fail")
	}
	if err := e.Settled(ctx); err != nil {
		return err
	}
	before, err := sidesOfMachine(ctx, e, d, m)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("a create that failed half-way left no side resource: %w", errNotOffered)
	}
	gone := before[0]
	for _, nth := range []string{"first", "second"} {
		if err := deleteSide(ctx, e, d, gone); err != nil && codes.Of(err) != codes.NotFound {
			return fmt.Errorf("the %s DeleteSideResource: %w", nth, err)
		}
	}
	return e.Eventually(ctx, func() error {
		after, err := sidesOfMachine(ctx, e, d, m)
		if err != nil {
			return err
		}
		for _, r := range after {
			if r.Kind == gone.Kind && r.ID == gone.ID {
				return fmt.Errorf("the %s %q that was deleted is still listed", r.Kind, r.ID)
			}
		}
		if len(after) != len(before)-1 {
			return fmt.Errorf("of %d side resources one was deleted, and %d are left", len(before), len(after))
		}
		return nil
	})
}

func deleteSideSparesVMs(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	d, err := sideDeleter(e)
	if err != nil {
		return err
	}
	before, err := sidesOfMachine(ctx, e, d, m)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("a VM has no side resource: %w", errNotOffered)
	}
	for _, r := range before {
		err := deleteSide(ctx, e, d, r)
		if errors.Is(err, errNotOffered) {
			return err
		}
		if codes.Of(err) != codes.FailedPrecondition {
			return fmt.Errorf("DeleteSideResource of the %s %q of a VM answers %s, want FailedPrecondition", r.Kind, r.ID, codes.Of(err))
		}
	}
	if err := e.Settled(ctx); err != nil {
		return err
	}
	after, err := sidesOfMachine(ctx, e, d, m)
	if err != nil {
		return err
	}
	if len(after) != len(before) {
		return fmt.Errorf("a VM had %d side resources, and has %d", len(before), len(after))
	}
	return onlyVM(ctx, e, m, resp.ProviderID)
}
