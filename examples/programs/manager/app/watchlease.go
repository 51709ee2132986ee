// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// watchLease ends the leadership as soon as a lease has another holder or is deleted, until the
// context ends. Without a watch, the elector notices it at most one retry period later.
func (m *manager) watchLease(ctx context.Context, name string) {
	lock := &guardedLock{newLeases(m.locks()...), m.gate} // its own: a lock serves one goroutine
	said := false
	for ctx.Err() == nil {
		err := m.followLease(ctx, name, lock)
		if apierrors.IsForbidden(err) && !said {
			said = true
			m.log.Warn("the lease cannot be watched, and is only looked at when it is renewed: the role of this manager is too old", "lease", name, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(m.s.LeaderElection.RetryPeriod):
		}
	}
}

// followLease makes one watch, which begins with the current lease.
func (m *manager) followLease(ctx context.Context, name string, lock resourcelock.Interface) error {
	leases := m.clients.leaseWatch.CoordinationV1().Leases(m.leaseNamespace())
	w, err := leases.Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := m.leaseChanged(ctx, lock, e); err != nil {
				return err
			}
		}
	}
}

// leaseChanged handles one event of the watch. The first events may be older than the lease of this
// process, so that another holder counts only if a read confirms it, or fails.
func (m *manager) leaseChanged(ctx context.Context, lock resourcelock.Interface, e watch.Event) error {
	switch o := e.Object.(type) {
	case *metav1.Status:
		return apierrors.FromObject(o)
	case *coordinationv1.Lease:
		if e.Type == watch.Deleted {
			return m.gate.lose(fmt.Errorf("%w: it was deleted", ErrLeaseLost))
		}
		if o.Spec.HolderIdentity != nil && *o.Spec.HolderIdentity == m.identity {
			return nil
		}
		held, _, err := lock.Get(ctx)
		if err != nil && ctx.Err() == nil || err == nil && held.HolderIdentity != m.identity {
			return m.gate.lose(fmt.Errorf("%w: it has another holder", ErrLeaseLost))
		}
	}
	return nil
}
