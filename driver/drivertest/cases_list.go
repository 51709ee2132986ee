// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"fmt"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func listCases() []promise {
	return []promise{
		{"ListIsComplete", "ListMachines returns every VM in the scope of the class, by provider ID with the name of its machine. It returns all of them or an error.", listIsComplete, needsCreate},
		{"ListAfterDelete", "ListMachines does not return a VM after its deletion is complete.", withShownVM(listAfterDelete), needsList},
		{"ListStaysInScope", "ListMachines returns no VM of another scope.", withShownVM(listStaysInScope), needsList},
	}
}

func listIsComplete(ctx context.Context, e *env) error {
	want := map[string]string{}
	for range 3 {
		m, resp, err := create(ctx, e)
		if err != nil {
			return err
		}
		want[resp.ProviderID] = m.Name
	}
	return e.Eventually(ctx, func() error {
		list, err := e.List(ctx, e.Class())
		if err != nil {
			return err
		}
		for id, name := range want {
			if got, ok := list[id]; !ok || got != name {
				return fmt.Errorf("ListMachines returned machine %q for VM %q (listed: %t), want %q", got, id, ok, name)
			}
		}
		return nil
	})
}

func listAfterDelete(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if err := e.Delete(ctx, m); err != nil {
		return fmt.Errorf("DeleteMachine: %w", err)
	}
	return e.Eventually(ctx, func() error {
		list, err := e.List(ctx, e.Class())
		if _, there := list[resp.ProviderID]; there && err == nil {
			err = fmt.Errorf("ListMachines still returns the deleted VM %q", resp.ProviderID)
		}
		return err
	})
}

func listStaysInScope(ctx context.Context, e *env, _ *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if e.Harness.OtherScope == nil {
		return fmt.Errorf("%w: the harness has no OtherScope", errNotChecked)
	}
	list, err := e.List(ctx, e.Harness.OtherScope.DeepCopy())
	if name, there := list[resp.ProviderID]; there && err == nil {
		err = fmt.Errorf("ListMachines of another scope returned VM %q of machine %q", resp.ProviderID, name)
	}
	return err
}
