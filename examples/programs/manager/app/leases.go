// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leases are the leases of the parts that a program runs, as one lock: it is held by a process that
// holds all of them. A process that gets only some of them releases these, so that it keeps no
// other program from its part. It serves one goroutine.
type leases struct {
	locks   []resourcelock.Interface
	own     []bool // whether this process held the lease when it was last read or written
	missing []bool // whether the lease did not exist when it was last read
}

func newLeases(locks ...resourcelock.Interface) *leases {
	return &leases{locks: locks, own: make([]bool, len(locks)), missing: make([]bool, len(locks))}
}

// Get implements [resourcelock.Interface]. It returns the record of a lease that another process
// holds, or else NotFound if a lease does not exist, or else the record of a released lease. The raw
// record is that of all leases, so that the lock expires when none of them is renewed.
func (l *leases) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var other, free, own *resourcelock.LeaderElectionRecord
	var missing error
	raws := make([][]byte, len(l.locks))
	for i, lock := range l.locks {
		record, raw, err := lock.Get(ctx)
		switch l.missing[i] = apierrors.IsNotFound(err); {
		case l.missing[i]:
			l.own[i], missing = false, err
			continue
		case err != nil: // it may still be the own one
			return nil, nil, err
		}
		l.own[i], raws[i] = false, raw
		switch record.HolderIdentity {
		case l.Identity():
			own, l.own[i] = record, true
		case "":
			free = record
		default:
			if other == nil || record.LeaseDurationSeconds > other.LeaseDurationSeconds {
				other = record
			}
		}
	}
	all := bytes.Join(raws, []byte(","))
	switch {
	case other != nil:
		return other, all, nil
	case missing != nil:
		return nil, nil, missing
	case free != nil:
		return free, all, nil
	default:
		return own, all, nil
	}
}

// Create implements [resourcelock.Interface]. It creates the leases that do not exist, and takes the
// others.
func (l *leases) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, func(_ int, lock resourcelock.Interface) error {
		err := lock.Create(ctx, r)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if held, _, err := lock.Get(ctx); err != nil || held.HolderIdentity != "" && held.HolderIdentity != l.Identity() {
			return errors.Join(err, errHeld)
		}
		return lock.Update(ctx, r)
	})
}

// errHeld means that another process has just acquired a lease.
var errHeld = errors.New("the lease is held by another process")

// Update implements [resourcelock.Interface]. It creates the leases that did not exist when the
// record of another was read: one was deleted, and the other has expired.
func (l *leases) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, func(i int, lock resourcelock.Interface) error {
		if l.missing[i] {
			return lock.Create(ctx, r)
		}
		return lock.Update(ctx, r)
	})
}

// write writes the leases in their order. If one cannot be written, it releases those that it has
// just acquired. A renewal releases none, because the controllers still run.
func (l *leases) write(ctx context.Context, r resourcelock.LeaderElectionRecord, write func(i int, lock resourcelock.Interface) error) error {
	var acquired []int
	for i, lock := range l.locks {
		if err := write(i, lock); err != nil {
			for _, j := range acquired {
				_ = l.locks[j].Update(ctx, released(r.LeaderTransitions)) // or it expires
				l.own[j] = false
			}
			return err
		}
		if !l.own[i] {
			acquired = append(acquired, i)
		}
		l.own[i], l.missing[i] = true, false
	}
	return nil
}

// released returns the record of a lease without a holder.
func released(transitions int) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	return resourcelock.LeaderElectionRecord{LeaderTransitions: transitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
}

// RecordEvent implements [resourcelock.Interface].
func (l *leases) RecordEvent(text string) {
	for _, lock := range l.locks {
		lock.RecordEvent(text)
	}
}

// Identity implements [resourcelock.Interface].
func (l *leases) Identity() string { return l.locks[0].Identity() }

// Describe implements [resourcelock.Interface].
func (l *leases) Describe() string {
	names := make([]string, len(l.locks))
	for i, lock := range l.locks {
		names[i] = lock.Describe()
	}
	return strings.Join(names, " and ")
}
