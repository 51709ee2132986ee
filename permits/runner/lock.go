// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/permits"
)

const (
	// annotation of the Lease object has the ledger.
	annotation = "machinist.dev/permits"
	// patience is the longest time between two reads of a process that waits, and that of one attempt.
	patience = 30 * time.Second
)

// ErrLost means that the permit of a [Lock.Run] ended before its work.
var ErrLost = errors.New("the permit was lost")

// RefusedError is why there is no permit, with the holders and the ends of their leases.
type RefusedError struct{ *permits.Refusal }

// Error returns the refusal as text.
func (e RefusedError) Error() string { return e.String() }

// Leases reads and writes Lease objects: it is a part of Leases(namespace) of client-go's
// CoordinationV1. Reads must not come from a cache.
type Leases interface {
	// Get reads a Lease.
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	// Create creates a Lease.
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	// Update updates a Lease that has not changed since it was read.
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Lock takes the permits of one group for one holder. It is safe for concurrent use. A process keeps
// one Lock as long as it runs: it remembers the last ledger, to notice one that was restored.
type Lock struct {
	// Leases has the object. Required.
	Leases Leases
	// Name is the group and the name of its Lease object, which is created if it does not exist.
	// Required.
	Name string
	// Holder is the name of the process, such as that of its Node. It is the same after a restart.
	// Processes with one name share a permit. Required.
	Holder string
	// Policy is the same for all processes of the group.
	Policy permits.Policy
	// Waiting is called when a method begins to wait, and when the reason changes, except after a
	// conflict. The error is that of [Lock.Acquire] without that of the context. Nil means that it is
	// not called.
	Waiting func(error)
	// Clock is nil for the clock of the system.
	Clock clock.WithDelayedExecution

	once sync.Once
	busy chan struct{}  // full while an attempt is made
	seen permits.Stored // what was last read or written
}

// Acquire waits for a permit until the context ends, and returns its lease. A holder that has a
// lease renews it at once, also outside of the window, and after a crash. The permit ends at
// [permits.Policy.Deadline] by the clock of this process, unless it is acquired again before: see
// [Lock.Run].
//
// Acquire polls, and retries failed requests. Permits are not granted in the order of the calls. It
// returns early if waiting does not help: without rights, if a field is missing or invalid, or if
// the object was edited ([permits.ErrUnreadable]).
//
// The error has the last [RefusedError], unless there was none: use [errors.As]. It also has the error of
// the context, and that of the last request. If the context ends during a request, the permit may have
// been granted. It is then free at the end of its lease, or after [Lock.Release].
func (l *Lock) Acquire(ctx context.Context) (permits.Lease, error) { return l.retry(ctx, false) }

// Run acquires a permit, calls work, and renews the permit while work runs. It returns the error of
// [Lock.Acquire] or of work. It does not release the permit, which has to last while the Node of a
// holder reboots.
//
// The context of work ends at [permits.Policy.Deadline] if the permit cannot be renewed, and at the
// next renewal if it was released. The error is then [ErrLost], joined with that of work. Work stops
// when its context ends: Run waits for it, and leaves no goroutine.
func (l *Lock) Run(ctx context.Context, work func(context.Context) error) error {
	if work == nil {
		return errors.New("lock: no work")
	}
	lease, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	working, end := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(working, lease, end) })
	defer renewing.Wait()
	defer end(nil)
	err = work(working)
	if lost := context.Cause(working); errors.Is(lost, ErrLost) {
		return errors.Join(lost, err)
	}
	return err
}

// Release ends the lease of the holder, so that another process gets the permit. It does nothing if
// there is no lease, and retries as [Lock.Acquire] does. Call it when the work is over: at the end of
// the work of [Lock.Run], after it, or in a process that was started again.
func (l *Lock) Release(ctx context.Context) error {
	_, err := l.retry(ctx, true)
	return err
}

// renew renews a lease until the context ends. It ends the context if the lease is lost.
func (l *Lock) renew(ctx context.Context, lease permits.Lease, end context.CancelCauseFunc) {
	renewals := l.Policy
	renewals.Limit = 0 // a lease that was released is not acquired again
	left := l.left(lease)
	deadline := l.clock().AfterFunc(left, func() { end(ErrLost) })
	defer deadline.Stop()
	for pause := left / 3; l.sleep(ctx, pause); {
		next, err := l.attempt(ctx, renewals, false)
		var refusal RefusedError
		refused := errors.As(err, &refusal)
		switch {
		case refused:
			end(fmt.Errorf("%w: the permits are now those of %v", ErrLost, refusal.Holders))
		case err != nil:
			pause = wait.Jitter(time.Second, 4)
		default:
			left = l.left(next)
			deadline.Reset(left)
			pause = left / 3
		}
	}
}

// left returns the time until the deadline of a lease. If the clock was set back, it is that of a lease
// that was renewed now.
func (l *Lock) left(lease permits.Lease) time.Duration {
	now := l.clock().Now()
	renewed := permits.Lease{Expires: now.Add(l.Policy.TTL)}
	return min(l.Policy.Deadline(lease).Sub(now), l.Policy.Deadline(renewed).Sub(now))
}

// retry repeats an attempt until it succeeds, waiting does not help, or the context ends.
func (l *Lock) retry(ctx context.Context, release bool) (permits.Lease, error) {
	if l == nil || l.Leases == nil || l.Name == "" || l.Holder == "" {
		return permits.Lease{}, errors.New("lock: Leases, Name and Holder are required")
	}
	if err := l.Policy.Validate(); err != nil {
		return permits.Lease{}, err
	}
	var known error
	for reported := ""; ; {
		lease, err := l.attempt(ctx, l.Policy, release)
		pause := wait.Jitter(time.Second, 4) // random, so that processes do not meet
		var refusal RefusedError
		switch refused := errors.As(err, &refusal); {
		case err == nil, refused && refusal.RetryAt.IsZero(), errors.Is(err, permits.ErrUnreadable),
			apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err):
			return lease, err
		case refused:
			known = refusal
			now := l.clock().Now()
			left := max(refusal.RetryAt.Sub(now), 0)
			if !l.Policy.Window.Opens(now).After(now) { // else a release before RetryAt does not matter
				left = min(left, patience)
			}
			pause += left
		case known != nil:
			err = fmt.Errorf("%w: %w", known, err)
		}
		if text := err.Error(); l.Waiting != nil && text != reported && ctx.Err() == nil && !apierrors.IsConflict(err) {
			reported = text
			l.Waiting(err)
		}
		if !l.sleep(ctx, pause) {
			return permits.Lease{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// attempt reads the object, creates it if it does not exist, and acquires or releases the lease.
func (l *Lock) attempt(ctx context.Context, p permits.Policy, release bool) (lease permits.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l.once.Do(func() { l.busy = make(chan struct{}, 1) })
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return lease, ctx.Err()
	}
	o, err := l.Leases.Get(ctx, l.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o, err = l.Leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.Name}}, metav1.CreateOptions{})
	}
	if err != nil {
		return lease, err
	}
	stored := permits.Stored{UID: string(o.UID), Ledger: o.Annotations[annotation], Holders: ptr.Deref(o.Spec.HolderIdentity, "")}
	var next permits.Stored
	var refusal *permits.Refusal
	if now := l.clock().Now(); release {
		next, err = stored.Release(l.seen, p, l.Name, l.Holder, now)
		l.seen = permits.Stored{} // the write may be carried out although it fails
	} else {
		next, lease, refusal, err = stored.Acquire(l.seen, p, l.Name, l.Holder, now)
	}
	if err == nil && next != stored {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, annotation, next.Ledger)
		o.Spec.HolderIdentity = &next.Holders
		_, err = l.Leases.Update(ctx, o, metav1.UpdateOptions{})
	}
	if err != nil {
		return permits.Lease{}, err
	}
	l.seen = next
	switch {
	case refusal != nil:
		return lease, RefusedError{refusal}
	case !release && l.left(lease) <= 0:
		return permits.Lease{}, errors.New("the requests took longer than the permit lasts")
	}
	return lease, nil
}

// sleep reports whether the time has passed before the context ended.
func (l *Lock) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-l.clock().After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *Lock) clock() clock.WithDelayedExecution {
	if l.Clock == nil {
		return clock.RealClock{}
	}
	return l.Clock
}
