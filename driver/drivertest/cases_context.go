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

// patience is how long after the end of its context a call may take to notice.
const patience = 30 * time.Second

func contextCases() []promise {
	return []promise{
		{"EndedContext", "With a context that has ended already a method does nothing, and ends soon with Canceled or DeadlineExceeded.", endedContext},
		{"CutOffCreate", "A method ends soon after its context does, with Canceled or DeadlineExceeded; what was under way in the cloud at that moment is found by CreateMachine, ListMachines and DeleteMachine.", cutOffCreate},
	}
}

// soon makes a call and returns its error. If the call does not return within
// the given time after the end of its context, soon returns without it. The
// driver is broken then, and the goroutine is its own.
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

// endedCode checks that err says that the context of a call has ended.
func endedCode(op driver.Operation, err error) error {
	switch codes.Of(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return nil
	case codes.OK:
		return fmt.Errorf("%s succeeds with a context that has ended", op)
	default:
		return fmt.Errorf("%s with a context that has ended has the code %s, want Canceled or DeadlineExceeded: %w", op, codes.Of(err), err)
	}
}

func endedContext(ctx context.Context, e *env) error {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	m := e.Machine()
	for _, a := range attempts(e, m, e.Class(), e.Secret()) {
		err, late := e.soon(cancelled, a.do)
		if late != nil {
			return fmt.Errorf("%s: %w", a.op, late)
		}
		if a.mayBeMissing() && codes.Of(err) == codes.Unimplemented {
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
		err = fmt.Errorf("CreateMachine with a context that had ended made %q", ids)
	}
	return err
}

func cutOffCreate(ctx context.Context, e *env) error {
	begin := e.clock.Now()
	if _, _, err := create(ctx, e); err != nil {
		return err
	}
	usual := e.clock.Since(begin)
	moments := []time.Duration{usual / 4, usual / 2, usual * 3 / 4}
	errs := make([]error, len(moments))
	var wg sync.WaitGroup
	for i, after := range moments {
		wg.Go(func() { errs[i] = cutOffOnce(ctx, e, after) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// cutOffOnce cuts a create off after a while, and checks that what it may have
// made is found.
func cutOffOnce(ctx context.Context, e *env, after time.Duration) error {
	m := e.Machine()
	if err := cutOff(ctx, e, m, after); err != nil {
		return err
	}
	resp, err := e.Create(ctx, m)
	if err != nil {
		return fmt.Errorf("CreateMachine after one that was cut off: %w", err)
	}
	if err := exactly(ctx, e, m, resp.ProviderID); err != nil {
		return err
	}
	if err := e.Delete(ctx, m); err != nil {
		return fmt.Errorf("DeleteMachine after a CreateMachine that was cut off: %w", err)
	}
	return nothing(ctx, e, m)
}

// cutOff creates the VM of m with a context that ends after a while.
func cutOff(ctx context.Context, e *env, m *v1alpha1.Machine, after time.Duration) error {
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		_ = e.sleep(short, after)
		cancel()
	}()
	err, late := e.soon(short, func(ctx context.Context) error { _, err := e.Create(ctx, m); return err })
	cancel()
	<-cancelled
	if late != nil {
		return fmt.Errorf("CreateMachine: %w", late)
	}
	if err == nil {
		return nil // it was quicker
	}
	return endedCode(driver.OpCreateMachine, err)
}
