// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// ErrLeaseLost says that this manager led and could not renew its lease in time.
// The process has to end; another one may lead already.
var ErrLeaseLost = errors.New("the lease was lost")

// elect works while the lease is ours. It returns when the context has ended and
// the lease is given back, or when the lease is lost.
//
// The election has a context of its own: the lease is renewed until the last
// worker has ended, and only then given back. The elector of client-go is not
// asked to do that: it would give a lease back that it failed to renew, while the
// workers still work.
func (m *manager) elect(ctx context.Context, events *events) error {
	electing, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	var leads atomic.Bool
	worked, lock := make(chan error, 1), m.lock(events)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: m.s.LeaderElection.ResourceName, WatchDog: m.health.lease,
		LeaseDuration: m.s.LeaderElection.LeaseDuration, RenewDeadline: m.s.LeaderElection.RenewDeadline, RetryPeriod: m.s.LeaderElection.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				leads.Store(true)
				err := m.work(ctx, lease, events)
				if lease.Err() == nil { // or it is lost, which the end of the work must not hide
					endElection()
				}
				worked <- err
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { m.log.Info("leader", "identity", identity, "self", identity == m.identity) },
		},
	})
	if err != nil {
		return err
	}
	m.health.lease.SetLeaderElection(elector)
	m.health.standBy()
	// A standby has nothing to finish. Whoever begins to lead just now sees that
	// the context has ended, and does nothing.
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			endElection()
		}
	})()
	elector.Run(electing)
	lost := electing.Err() == nil
	if lost || leads.Load() {
		err = <-worked
	}
	if lost {
		m.log.Error("the lease was lost")
		return errors.Join(ErrLeaseLost, err)
	}
	if !errors.Is(err, errStuck) {
		m.release(lock) //nolint:contextcheck // the context has ended, and this comes after it
	}
	return err
}

func (m *manager) lock(events *events) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.s.Namespace, Name: m.s.LeaderElection.ResourceName},
		Client:     m.clients.lease.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.identity, EventRecorder: events.recorder},
	}
}

// release gives the lease back if it is ours, so that the next manager need not
// wait until it is over. Nothing of ours works any more.
func (m *manager) release(lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), m.s.LeaderElection.RenewDeadline/2)
	defer cancel()
	err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error { // a renewal may just have been cut short
		held, _, err := lock.Get(ctx)
		if err != nil || held.HolderIdentity != m.identity {
			return err
		}
		now := metav1.Now()
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		m.log.Warn("the lease was not given back", "err", err)
	}
}
