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

func initializeCases() []promise {
	return []promise{
		{"InitializeCompletes", "InitializeMachine completes a VM that exists and is not usable yet, and is idempotent. Afterwards GetMachineStatus does not return Uninitialized.", withVM(initializeCompletes), needsCreate},
		{"InitializeWithoutVM", "InitializeMachine returns NotFound if the VM does not exist.", initializeWithoutVM, needsDelete},
		{"UninitializedHasIdentity", "GetMachineStatus with the code Uninitialized returns a ProviderID and a NodeName. It never returns Uninitialized if InitializeMachine is Unimplemented.", withVM(uninitializedHasIdentity), needsCreate},
	}
}

func initializeCompletes(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	for _, nth := range []string{"first", "second"} {
		err := e.Eventually(ctx, func() error {
			got, err := e.Initialize(ctx, m)
			switch {
			case codes.Of(err) == codes.Unimplemented:
				return fmt.Errorf("%w: InitializeMachine is Unimplemented", errNotChecked)
			case err != nil:
				return fmt.Errorf("the %s InitializeMachine: %w", nth, err)
			case got.ProviderID != resp.ProviderID || got.NodeName != resp.NodeName:
				return fmt.Errorf("InitializeMachine returned provider ID %q and node %q, CreateMachine %q and %q",
					got.ProviderID, got.NodeName, resp.ProviderID, resp.NodeName)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return e.Eventually(ctx, func() error {
		_, err := e.Get(ctx, m)
		if err != nil && codes.Of(err) != codes.Unimplemented {
			return fmt.Errorf("GetMachineStatus after InitializeMachine: %w", err)
		}
		return nil
	})
}

func initializeWithoutVM(ctx context.Context, e *env) error {
	_, err := e.Initialize(ctx, e.Machine())
	switch codes.Of(err) {
	case codes.NotFound:
		return nil
	case codes.Unimplemented:
		return fmt.Errorf("%w: InitializeMachine is Unimplemented", errNotChecked)
	case codes.OK:
		return errors.New("InitializeMachine of a VM that does not exist succeeded")
	default:
		return fmt.Errorf("InitializeMachine of a VM that does not exist: %w", err)
	}
}

func uninitializedHasIdentity(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if err := get(ctx, e, unnamed(m), resp); err != nil {
		return err // also for Uninitialized without a response
	}
	_, err := e.Get(ctx, m)
	if codes.Of(err) != codes.Uninitialized {
		return fmt.Errorf("%w: GetMachineStatus does not return Uninitialized", errNotChecked)
	}
	if _, err := e.Initialize(ctx, m); codes.Of(err) == codes.Unimplemented {
		return errors.New("GetMachineStatus returned Uninitialized, but InitializeMachine is Unimplemented")
	}
	return nil
}
