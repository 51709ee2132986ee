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
		{"DeleteSideResourceRemovesOne", "DeleteSideResource deletes the side resource of the request and no other. It may be repeated.", deleteSideRemovesOne, needsCreate},
		{"DeleteSideResourceKeepsVMs", "DeleteSideResource returns FailedPrecondition for a side resource of an existing VM and does not delete it.", withShownVM(deleteSideKeepsVMs), needsList},
	}
}

// sideDeleter returns the optional interface of the driver, or an error that wraps
// errNotChecked.
func sideDeleter(e *env) (driver.SideResourceDeleter, error) {
	d, ok := driver.As[driver.SideResourceDeleter](e.Driver)
	if !ok {
		return nil, fmt.Errorf("%w: the driver does not implement driver.SideResourceDeleter", errNotChecked)
	}
	return d, nil
}

// sidesOfMachine returns the listed side resources of m.
func sidesOfMachine(ctx context.Context, e *env, d driver.SideResourceDeleter, m *v1alpha1.Machine) (out []driver.SideResource, err error) {
	resp, err := ask(ctx, d.ListSideResources, &driver.ListSideResourcesRequest{MachineClass: e.Class(), Secret: e.Secret()})
	if codes.Of(err) == codes.Unimplemented {
		return nil, fmt.Errorf("%w: ListSideResources is Unimplemented", errNotChecked)
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

// deleteSide calls DeleteSideResource. Unimplemented becomes errNotChecked.
func deleteSide(ctx context.Context, e *env, d driver.SideResourceDeleter, r driver.SideResource) error {
	_, err := ask(ctx, d.DeleteSideResource, &driver.DeleteSideResourceRequest{Resource: r, MachineClass: e.Class(), Secret: e.Secret()})
	if codes.Of(err) == codes.Unimplemented {
		return fmt.Errorf("%w: DeleteSideResource is Unimplemented", errNotChecked)
	}
	return err
}

func deleteSideRemovesOne(ctx context.Context, e *env) error {
	d, err := sideDeleter(e)
	if err != nil {
		return err
	}
	if e.Harness.FailCreate == nil {
		return fmt.Errorf("%w: the harness has no FailCreate", errNotChecked)
	}
	m := e.Machine()
	e.Harness.FailCreate(m.Name)
	if _, err := e.Create(ctx, m); err == nil {
		return errors.New("drivertest: Harness.FailCreate did not make CreateMachine fail")
	}
	if err := e.Settled(ctx); err != nil {
		return err
	}
	before, err := sidesOfMachine(ctx, e, d, m)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("%w: the failed CreateMachine left no side resource", errNotChecked)
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
				return fmt.Errorf("deleted %s %q is still listed", r.Kind, r.ID)
			}
		}
		if len(after) != len(before)-1 {
			return fmt.Errorf("one of %d side resources was deleted, but %d are left", len(before), len(after))
		}
		return nil
	})
}

func deleteSideKeepsVMs(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	d, err := sideDeleter(e)
	if err != nil {
		return err
	}
	before, err := sidesOfMachine(ctx, e, d, m)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("%w: the VM has no side resource", errNotChecked)
	}
	for _, r := range before {
		err := deleteSide(ctx, e, d, r)
		if errors.Is(err, errNotChecked) {
			return err
		}
		if codes.Of(err) != codes.FailedPrecondition {
			return fmt.Errorf("DeleteSideResource of %s %q of a VM returned the code %s, want FailedPrecondition", r.Kind, r.ID, codes.Of(err))
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
		return fmt.Errorf("the VM had %d side resources and now has %d", len(before), len(after))
	}
	return onlyVM(ctx, e, m, resp.ProviderID)
}
