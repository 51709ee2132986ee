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

func getCases() []promise {
	return []promise{
		{"GetFindsByName", "GetMachineStatus finds the VM by the name of the machine if its ProviderID is empty.", withVM(getFindsByName), needsCreate},
		{"GetFindsByProviderID", "GetMachineStatus finds the VM by the ProviderID of the machine if it is set.", withVM(get), needsCreate},
		{"GetWithoutVM", "GetMachineStatus returns NotFound if the VM does not exist.", getWithoutVM, needsDelete},
		{"GetAfterDelete", "GetMachineStatus returns NotFound after the VM was deleted.", withVM(getAfterDelete), needsAll},
		{"IdentityIsStable", "A provider ID is not empty, belongs to one VM, is the same in every response, and never changes while the VM exists. The same holds for the name of the Node.", withVM(identityIsStable), needsList},
	}
}

// get checks that GetMachineStatus eventually returns the same as CreateMachine.
func get(ctx context.Context, e *env, m *v1alpha1.Machine, want *driver.CreateMachineResponse) error {
	return e.Eventually(ctx, func() error {
		got, err := e.Found(ctx, m)
		switch {
		case err != nil:
			return fmt.Errorf("GetMachineStatus of a VM that exists: %w", err)
		case got.ProviderID != want.ProviderID || got.NodeName != want.NodeName:
			return fmt.Errorf("GetMachineStatus returned provider ID %q and node %q, CreateMachine %q and %q",
				got.ProviderID, got.NodeName, want.ProviderID, want.NodeName)
		}
		return nil
	})
}

func getFindsByName(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	return get(ctx, e, unnamed(m), resp)
}

// absent checks that GetMachineStatus returns NotFound.
func absent(ctx context.Context, e *env, m *v1alpha1.Machine) error {
	_, err := e.Get(ctx, m)
	switch codes.Of(err) {
	case codes.NotFound:
		return nil
	case codes.Unimplemented:
		return fmt.Errorf("%w: GetMachineStatus is Unimplemented", errNotChecked)
	case codes.OK:
		return errors.New("GetMachineStatus found a VM that does not exist")
	default:
		return fmt.Errorf("GetMachineStatus of a VM that does not exist has the code %s, want NotFound: %w", codes.Of(err), err)
	}
}

func getWithoutVM(ctx context.Context, e *env) error { return absent(ctx, e, e.Machine()) }

func getAfterDelete(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if err := get(ctx, e, m, resp); err != nil {
		return err
	}
	if err := e.Delete(ctx, m); err != nil {
		return fmt.Errorf("DeleteMachine: %w", err)
	}
	return errors.Join(
		e.Eventually(ctx, func() error { return absent(ctx, e, m) }),
		e.Eventually(ctx, func() error { return absent(ctx, e, unnamed(m)) }),
	)
}

func identityIsStable(ctx context.Context, e *env, m *v1alpha1.Machine, first *driver.CreateMachineResponse) error {
	n, other, err := create(ctx, e)
	if err != nil {
		return err
	}
	if first.ProviderID == other.ProviderID || first.NodeName == other.NodeName {
		return fmt.Errorf("two machines have the provider IDs %q and %q, the nodes %q and %q",
			first.ProviderID, other.ProviderID, first.NodeName, other.NodeName)
	}
	if err := errors.Join(exactly(ctx, e, m, first.ProviderID), onlyVM(ctx, e, n, other.ProviderID)); err != nil {
		return err
	}
	for range 3 {
		if err := get(ctx, e, unnamed(m), first); err != nil && !errors.Is(err, errNotChecked) {
			return err
		}
	}
	return onlyVM(ctx, e, m, first.ProviderID)
}
