// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// abandonAfter is how long a call may continue after the end of its context.
const abandonAfter = 10 * time.Second

// An AbandonedError is the error of a call that was abandoned by [WithDeadline], and of the calls
// that are not made because of it. Its code is DeadlineExceeded, or Canceled if the caller canceled
// the call.
type AbandonedError struct {
	// Call is the call that has not ended. It has no Duration, Code and Err.
	Call Call
}

// Error returns a text that is the same until the call ends.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("%s has not ended since %s although its time is over; no other call is made until it ends",
		e.Call.target(), e.Call.Start.UTC().Format(time.RFC3339))
}

// Abandoned returns the calls that were abandoned by the [WithDeadline] of d, or of a driver that d
// wraps, and have not ended: the oldest first, each with its duration until now and the code
// DeadlineExceeded.
func Abandoned(d Driver) (calls []Call) {
	for d := range layers(d) {
		if w, ok := d.(*wrapped); ok && w.calls != nil {
			calls = append(calls, w.calls.list()...)
		}
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return a.Start.Compare(b.Start) })
	return calls
}

// abandonedCalls are the abandoned calls of one driver. It is safe for use by multiple goroutines.
type abandonedCalls struct {
	mu  sync.Mutex
	all []*callInFlight
}

// callInFlight is a call whose end is awaited. mu of the abandonedCalls guards over.
type callInFlight struct {
	target target
	start  time.Time
	over   bool
	end    chan callEnd
}

// callEnd is the end of a call: its error, or its panic.
type callEnd struct {
	err      error
	panicked *callPanicError
}

// refuse returns the error of a call that must wait for an abandoned one, or nil.
func (a *abandonedCalls) refuse(t target) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.all {
		if c.target.blocks(t) {
			failure := &AbandonedError{Call: c.call()}
			return status.WrapError(codes.DeadlineExceeded, failure.Error(), failure)
		}
	}
	return nil
}

// blocks reports whether no call of another target is made until a call of t has ended.
func (t target) blocks(other target) bool {
	if t.machine != "" {
		return t.machine == other.machine && t.namespace == other.namespace
	}
	return t == other
}

// list returns the abandoned calls.
func (a *abandonedCalls) list() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := make([]Call, len(a.all))
	for i, c := range a.all {
		calls[i] = c.call()
		calls[i].Duration, calls[i].Code = max(0, time.Since(c.start)), codes.DeadlineExceeded
	}
	return calls
}

// within makes a call in a goroutine of its own, and returns its error. It abandons a call that
// has not ended some time after its context.
func (a *abandonedCalls) within(ctx context.Context, t target, run func(context.Context) error) error {
	c := &callInFlight{target: t, start: time.Now(), end: make(chan callEnd, 1)}
	go a.make(ctx, c, run)
	select {
	case end := <-c.end:
		return end.result()
	case <-ctx.Done():
	}
	grace := time.NewTimer(abandonAfter)
	defer grace.Stop()
	select {
	case end := <-c.end:
		return end.result()
	case <-grace.C:
	}
	a.mu.Lock()
	over := c.over
	if !over {
		a.all = append(a.all, c)
	}
	a.mu.Unlock()
	if over {
		return (<-c.end).result()
	}
	return &AbandonedError{Call: c.call()}
}

// make makes a call, and records its end.
func (a *abandonedCalls) make(ctx context.Context, c *callInFlight, run func(context.Context) error) {
	end := callEnd{err: status.Error(codes.Internal, "the driver ended the goroutine of the call")}
	defer func() {
		if value := recover(); value != nil {
			end.panicked = &callPanicError{value: value, stack: debug.Stack()}
		}
		a.mu.Lock()
		c.over = true
		a.all = slices.DeleteFunc(a.all, func(other *callInFlight) bool { return other == c })
		a.mu.Unlock()
		c.end <- end
	}()
	end.err = run(ctx)
}

// result returns the error of the call, or panics as the driver did.
func (e callEnd) result() error {
	if e.panicked != nil {
		panic(e.panicked)
	}
	return e.err
}

// call returns the call without its end.
func (c *callInFlight) call() Call {
	return Call{Operation: c.target.op, Namespace: c.target.namespace, Machine: c.target.machine, Class: c.target.class, Start: c.start}
}

// callPanicError is a panic of a driver, with the stack of the goroutine of the call.
type callPanicError struct {
	value any
	stack []byte
}

// Error returns the text of the value.
func (p *callPanicError) Error() string { return fmt.Sprint(p.value) }

// Unwrap returns the value if it is an error.
func (p *callPanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Stack returns the stack of the driver.
func (p *callPanicError) Stack() []byte { return p.stack }
