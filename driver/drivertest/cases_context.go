// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// patience is how long a call may take to return after the end of its context.
const patience = 30 * time.Second

func contextCases() []promise {
	return []promise{
		{"EndedContext", "With a canceled context a method does nothing and returns Canceled or DeadlineExceeded soon.", endedContext, needsList},
		{"CanceledCreate", "CreateMachine returns soon after its context is canceled, with Canceled or DeadlineExceeded. CreateMachine, ListMachines and DeleteMachine find the VM that it may have made.", canceledCreate, needsAll},
	}
}

// soon makes a call and returns its error. late is set if the call does not return within
// patience after the end of its context. The goroutine of the call then continues.
func (e *env) soon(ctx context.Context, do func(context.Context) error) (err error, late error) {
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err, nil
	case <-ctx.Done():
	}
	timer := e.clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, nil
	case <-timer.C():
		return nil, fmt.Errorf("the call has not returned %s after the end of its context", patience)
	}
}

// endedCode checks that err is Canceled or DeadlineExceeded.
func endedCode(op driver.Operation, err error) error {
	switch codes.Of(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return nil
	case codes.OK:
		return fmt.Errorf("%s succeeded with a canceled context", op)
	default:
		return fmt.Errorf("%s with a canceled context has the code %s, want Canceled or DeadlineExceeded: %w", op, codes.Of(err), err)
	}
}

func endedContext(ctx context.Context, e *env) error {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	m := e.Machine()
	for _, a := range attempts(e, m, e.Class(), e.Secret()) {
		err, late := e.soon(canceled, a.do)
		if late != nil {
			return fmt.Errorf("%s: %w", a.op, late)
		}
		if a.optional() && codes.Of(err) == codes.Unimplemented {
			continue
		}
		if err := endedCode(a.op, err); err != nil {
			return err
		}
	}
	if err := e.Settled(ctx); err != nil {
		return err
	}
	ids, err := e.Owned(ctx, m)
	if err == nil && len(ids) > 0 {
		err = fmt.Errorf("CreateMachine with a canceled context made the VMs %q", ids)
	}
	return err
}

func canceledCreate(ctx context.Context, e *env) error {
	begin := e.clock.Now()
	if _, _, err := create(ctx, e); err != nil {
		return err
	}
	usual := e.clock.Since(begin)
	moments := []time.Duration{usual / 4, usual / 2, usual * 3 / 4}
	errs := make([]error, len(moments))
	var wg sync.WaitGroup
	for i, after := range moments {
		wg.Go(func() { errs[i] = cancelOnce(ctx, e, after) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cancelOnce cancels a CreateMachine after a while and checks that its VM is found.
func cancelOnce(ctx context.Context, e *env, after time.Duration) error {
	m := e.Machine()
	if err := createCanceled(ctx, e, m, after); err != nil {
		return err
	}
	resp, err := e.Create(ctx, m)
	if err != nil {
		return fmt.Errorf("CreateMachine after a canceled one: %w", err)
	}
	if err := exactly(ctx, e, m, resp.ProviderID); err != nil {
		return err
	}
	if err := e.Delete(ctx, m); err != nil {
		return fmt.Errorf("DeleteMachine after a canceled CreateMachine: %w", err)
	}
	return nothing(ctx, e, m)
}

// createCanceled calls CreateMachine for m with a context that is canceled after a while.
func createCanceled(ctx context.Context, e *env, m *v1alpha1.Machine, after time.Duration) error {
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	canceled := make(chan struct{})
	go func() {
		defer close(canceled)
		_ = e.sleep(short, after)
		cancel()
	}()
	err, late := e.soon(short, func(ctx context.Context) error { _, err := e.Create(ctx, m); return err })
	cancel()
	<-canceled
	if late != nil {
		return fmt.Errorf("CreateMachine: %w", late)
	}
	if err == nil {
		return nil // the call was faster
	}
	return endedCode(driver.OpCreateMachine, err)
}
