// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func createCases() []promise {
	return []promise{
		{"CreateReturnsIdentity", "CreateMachine returns a ProviderID and a NodeName if its error is nil.", withVM(createReturnsIdentity), needsDelete},
		{"CreateTwice", "CreateMachine is idempotent by the name of the machine: it returns an existing VM of the machine and does not make a second one.", withVM(createTwice), needsList},
		{"CreateByAnotherProcess", "CreateMachine returns an existing VM of the machine that another process made.", withVM(createByAnotherProcess), needsList},
		{"CreateWithNewUID", "The name of the machine is the key, not its UID: a Machine restored from a backup has a new UID and the same VM.", withVM(createWithNewUID), needsList},
		{"CreateConcurrently", "CreateMachine makes one VM for a machine, even if several calls run at the same time.", createConcurrently, needsList},
		{"CreateAfterFailure", "CreateMachine that failed after some steps leaves nothing, or only objects with the name of the machine, so that CreateMachine completes them and DeleteMachine deletes them.", createAfterFailure, needsAll},
	}
}

// create makes the VM of a new machine. It returns the machine with its provider ID.
func create(ctx context.Context, e *env) (*v1alpha1.Machine, *driver.CreateMachineResponse, error) {
	m := e.Machine()
	resp, err := e.Create(ctx, m)
	if err != nil {
		return nil, nil, fmt.Errorf("CreateMachine: %w", err)
	}
	if resp.ProviderID == "" {
		return nil, nil, errors.New("CreateMachine returned no ProviderID")
	}
	withID := m.DeepCopy()
	withID.Spec.ProviderID = resp.ProviderID
	return withID, resp, nil
}

// withVM returns a check that first makes the VM of a new machine.
func withVM(then func(context.Context, *env, *v1alpha1.Machine, *driver.CreateMachineResponse) error) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		m, resp, err := create(ctx, e)
		if err != nil {
			return err
		}
		return then(ctx, e, m, resp)
	}
}

// withShownVM returns a check that first makes the VM of a new machine and waits until
// ListMachines returns it.
func withShownVM(then func(context.Context, *env, *v1alpha1.Machine, *driver.CreateMachineResponse) error) func(context.Context, *env) error {
	return withVM(func(ctx context.Context, e *env, m *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
		if err := exactly(ctx, e, m, resp.ProviderID); err != nil {
			return err
		}
		return then(ctx, e, m, resp)
	})
}

// unnamed returns a copy of m without its provider ID, as after a lost response of
// CreateMachine.
func unnamed(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = m.DeepCopy()
	m.Spec.ProviderID = ""
	return m
}

func createReturnsIdentity(_ context.Context, _ *env, _ *v1alpha1.Machine, resp *driver.CreateMachineResponse) error {
	if resp.NodeName == "" {
		return errors.New("CreateMachine returned no NodeName")
	}
	return nil
}

// createAgain calls CreateMachine of a driver for m again. It checks that the VM is the same
// and the only one.
func createAgain(ctx context.Context, e *env, d driver.Driver, m *v1alpha1.Machine, first *driver.CreateMachineResponse) error {
	second, err := e.CreateBy(ctx, d, &driver.CreateMachineRequest{Machine: unnamed(m), MachineClass: e.Class(), Secret: e.Secret()})
	switch {
	case err != nil:
		return fmt.Errorf("the second CreateMachine: %w", err)
	case second.ProviderID != first.ProviderID:
		return fmt.Errorf("two calls of CreateMachine for one machine made %q and %q", first.ProviderID, second.ProviderID)
	case second.NodeName != first.NodeName:
		return fmt.Errorf("two calls of CreateMachine for one machine returned the node names %q and %q", first.NodeName, second.NodeName)
	}
	return exactly(ctx, e, m, first.ProviderID)
}

// exactly waits until the cloud has settled and checks that the VM with this ID is the only
// one of m.
func exactly(ctx context.Context, e *env, m *v1alpha1.Machine, id string) error {
	if err := e.Settled(ctx); err != nil {
		return err
	}
	return onlyVM(ctx, e, m, id)
}

// onlyVM checks that ListMachines returns the VM with this ID as the only one of m.
func onlyVM(ctx context.Context, e *env, m *v1alpha1.Machine, id string) error {
	ids, err := e.Owned(ctx, m)
	if err == nil && (len(ids) != 1 || ids[0] != id) {
		err = fmt.Errorf("ListMachines returned the VMs %q of the machine, want only %q", ids, id)
	}
	return err
}

func createTwice(ctx context.Context, e *env, m *v1alpha1.Machine, first *driver.CreateMachineResponse) error {
	return createAgain(ctx, e, e.Driver, m, first)
}

func createByAnotherProcess(ctx context.Context, e *env, m *v1alpha1.Machine, first *driver.CreateMachineResponse) error {
	return createAgain(ctx, e, e.Harness.New(), m, first)
}

func createWithNewUID(ctx context.Context, e *env, m *v1alpha1.Machine, first *driver.CreateMachineResponse) error {
	m.UID += "-restored"
	return createAgain(ctx, e, e.Driver, m, first)
}

func createConcurrently(ctx context.Context, e *env) error {
	const callers = 8
	m := e.Machine()
	var answers [callers]*driver.CreateMachineResponse
	var errs [callers]error
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { answers[i], errs[i] = e.Create(ctx, m.DeepCopy()) })
	}
	wg.Wait()
	ids := map[string]bool{}
	for i, err := range errs {
		switch {
		case err == nil:
			ids[answers[i].ProviderID] = true
		case codes.Of(err) != codes.Aborted:
			return fmt.Errorf("one of %d concurrent calls of CreateMachine: %w", callers, err)
		}
	}
	if len(ids) > 1 {
		return fmt.Errorf("%d concurrent calls of CreateMachine for one machine made %d VMs", callers, len(ids))
	}
	var last *driver.CreateMachineResponse
	err := e.Eventually(ctx, func() (err error) {
		last, err = e.Create(ctx, m)
		return err
	})
	if err != nil {
		return fmt.Errorf("CreateMachine after concurrent ones: %w", err)
	}
	return exactly(ctx, e, m, last.ProviderID)
}

func createAfterFailure(ctx context.Context, e *env) error {
	if e.Harness.FailCreate == nil {
		return fmt.Errorf("%w: the harness has no FailCreate", errNotChecked)
	}
	completed, removed := e.Machine(), e.Machine()
	for _, m := range []*v1alpha1.Machine{completed, removed} {
		e.Harness.FailCreate(m.Name)
		if _, err := e.Create(ctx, m); err == nil {
			return errors.New("drivertest: Harness.FailCreate did not make CreateMachine fail")
		}
	}
	if err := e.Settled(ctx); err != nil {
		return err
	}
	resp, err := e.Create(ctx, completed)
	if err != nil {
		return fmt.Errorf("CreateMachine after a failed one: %w", err)
	}
	if err := exactly(ctx, e, completed, resp.ProviderID); err != nil {
		return err
	}
	for _, m := range []*v1alpha1.Machine{completed, removed} {
		if err := e.Delete(ctx, m); err != nil {
			return fmt.Errorf("DeleteMachine after a failed CreateMachine: %w", err)
		}
		if err := nothing(ctx, e, m); err != nil {
			return err
		}
	}
	return nil
}
