// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// ErrLeaseLost says that this manager led and does not any more: it could not renew
// its lease in time, another manager holds the lease, or the lease was deleted. The
// process has to end; another one may lead already.
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
	m.gate.onLoss(func(why error, inFlight []string) {
		endElection()
		m.log.Error("the lease was lost: nothing begins any more", "why", why, "calls", len(inFlight), "inFlight", inFlight)
	})
	var leads atomic.Bool
	worked := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &guardedLock{m.lock(events), m.gate}, Name: m.s.LeaseName(), WatchDog: m.health.lease,
		LeaseDuration: m.s.LeaderElection.LeaseDuration, RenewDeadline: m.s.LeaderElection.RenewDeadline, RetryPeriod: m.s.LeaderElection.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				leads.Store(true)
				var watching sync.WaitGroup
				watching.Go(func() { m.watchLease(lease, events) })
				err := m.work(ctx, lease, events)
				endElection()
				watching.Wait()
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
	return m.stopLeading(electing, leads.Load(), worked, events)
}

// stopLeading ends what an election was about: the elector has returned. Nothing is
// given back that was lost, or while a driver call still runs.
func (m *manager) stopLeading(electing context.Context, led bool, worked <-chan error, events *events) (err error) {
	if electing.Err() == nil {
		_ = m.gate.lose(fmt.Errorf("%w: the election gave up", ErrLeaseLost))
	}
	lost := m.gate.lost()
	if lost != nil || led {
		err = <-worked
	}
	if lost != nil {
		return errors.Join(lost, err)
	}
	if !errors.Is(err, errStuck) {
		events.close() // the last write
		m.gate.giveBack()
		m.release(m.lock(events)) //nolint:contextcheck // the context has ended, and this comes after it
	}
	return err
}

// leaseNamespace is the namespace of the lease.
func (m *manager) leaseNamespace() string {
	return cmp.Or(m.s.LeaderElection.ResourceNamespace, m.s.Namespace)
}

func (m *manager) lock(events *events) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.leaseNamespace(), Name: m.s.LeaseName()},
		Client:     m.clients.lease.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.identity, EventRecorder: events.recorder},
	}
}

// guardedLock tells a gate of every renewal, and of what it sees of the lease.
type guardedLock struct {
	resourcelock.Interface
	gate *gate
}

// Get implements [resourcelock.Interface]. A leader that sees another holder, or no
// lease, has lost it.
func (l *guardedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if !l.gate.leads() {
		return record, raw, err
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, l.gate.lose(fmt.Errorf("%w: it was deleted", ErrLeaseLost))
	case err == nil && record.HolderIdentity != l.Identity():
		return nil, nil, l.gate.lose(fmt.Errorf("%w: it is held by %q", ErrLeaseLost, record.HolderIdentity))
	}
	return record, raw, err
}

// Create implements [resourcelock.Interface].
func (l *guardedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Create(ctx, r) })
}

// Update implements [resourcelock.Interface].
func (l *guardedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Update(ctx, r) })
}

// renew writes the lease, and counts from before the request was sent.
func (l *guardedLock) renew(write func() error) error {
	if err := l.gate.lapsed(); err != nil {
		return err
	}
	sent := l.gate.now()
	if err := write(); err != nil {
		return err
	}
	return l.gate.renew(sent)
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
