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
		{"InitializeFinishes", "InitializeMachine finishes a VM that exists but is not usable yet, and is idempotent; afterwards GetMachineStatus does not answer Uninitialized.", withVM(initializeFinishes)},
		{"InitializeOfNothing", "InitializeMachine: NotFound means that there is no VM.", initializeOfNothing},
		{"UninitializedTellsIdentity", "GetMachineStatus: Uninitialized means that InitializeMachine has to be called; the response next to it has ProviderID and NodeName. If InitializeMachine is Unimplemented, it must never answer Uninitialized.", withVM(uninitializedTellsIdentity)},
	}
}

func initializeFinishes(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	for _, nth := range []string{"first", "second"} {
		err := e.Eventually(ctx, func() error {
			got, err := e.Initialize(ctx, m)
			switch {
			case codes.Of(err) == codes.Unimplemented:
				return fmt.Errorf("InitializeMachine is Unimplemented: %w", errNotOffered)
			case err != nil:
				return fmt.Errorf("the %s InitializeMachine: %w", nth, err)
			case got.ProviderID != resp.ProviderID || got.NodeName != resp.NodeName:
				return fmt.Errorf("InitializeMachine says provider ID %q, node %q; CreateMachine said %q, %q",
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

func initializeOfNothing(ctx context.Context, e *env) error {
	_, err := e.Initialize(ctx, e.Machine())
	switch codes.Of(err) {
	case codes.NotFound:
		return nil
	case codes.Unimplemented:
		return fmt.Errorf("InitializeMachine is Unimplemented: %w", errNotOffered)
	case codes.OK:
		return errors.New("InitializeMachine of a VM that does not exist succeeds")
	default:
		return fmt.Errorf("InitializeMachine of a VM that does not exist: %w", err)
	}
}

func uninitializedTellsIdentity(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if err := get(ctx, e, unnamed(m), resp); err != nil {
		return err // also if there is no response next to Uninitialized
	}
	_, err := e.Get(ctx, m)
	if codes.Of(err) != codes.Uninitialized {
		return fmt.Errorf("GetMachineStatus does not answer Uninitialized: %w", errNotOffered)
	}
	if _, err := e.Initialize(ctx, m); codes.Of(err) == codes.Unimplemented {
		return errors.New("GetMachineStatus answers Uninitialized, and InitializeMachine is Unimplemented")
	}
	return nil
}
