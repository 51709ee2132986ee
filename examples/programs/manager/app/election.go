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

// ErrLeaseLost means that this process was the leader and is not any more: it did not renew its
// lease in time, another process holds the lease, or the lease was deleted. The process has to end,
// since another one may lead.
var ErrLeaseLost = errors.New("the lease was lost")

// elect runs the controllers while this process holds the lease. It returns when the context has
// ended and the lease is released, or when the lease is lost.
//
// The election has its own context: the lease is renewed until the last worker has ended, and then
// released. The release of client-go's elector is not used: it also releases a lease that it failed
// to renew, while workers still run.
func (m *manager) elect(ctx context.Context, events *events) error {
	electing, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	m.gate.onLoss(func(why error, inFlight []string) {
		endElection()
		m.log.Error("the lease was lost: no write and no driver call begins", "why", why, "calls", len(inFlight), "inFlight", inFlight)
	})
	var leads atomic.Bool
	worked := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &guardedLock{newLeases(m.locks()...), m.gate}, Name: m.s.LeaseNames()[0],
		LeaseDuration: m.s.LeaderElection.LeaseDuration, RenewDeadline: m.s.LeaderElection.RenewDeadline, RetryPeriod: m.s.LeaderElection.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				leads.Store(true)
				var watching sync.WaitGroup
				for _, name := range m.s.LeaseNames() {
					watching.Go(func() { m.watchLease(lease, name) })
				}
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
	m.health.standBy()
	// A standby has nothing to finish. A process that becomes the leader at this moment sees that
	// the context has ended, and does nothing.
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			endElection()
		}
	})()
	elector.Run(electing)
	return m.stopLeading(electing, leads.Load(), worked, events)
}

// stopLeading ends the election after the elector has returned. It does not release a lease that
// was lost, or while a driver call runs.
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
		for _, lock := range m.locks() {
			m.release(lock) //nolint:contextcheck // the context has ended, and this comes after it
		}
	}
	return err
}

// leaseNamespace returns the namespace of the lease.
func (m *manager) leaseNamespace() string {
	return cmp.Or(m.s.LeaderElection.ResourceNamespace, m.s.Namespace)
}

// locks returns the locks of the leases of this program. They write no Events: the lease has the name of its
// holder and the times, and a start beside an idle fleet writes nothing else.
func (m *manager) locks() (locks []resourcelock.Interface) {
	for _, name := range m.s.LeaseNames() {
		locks = append(locks, &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: m.leaseNamespace(), Name: name},
			Client:     m.clients.lease.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: m.identity},
		})
	}
	return locks
}

// guardedLock reports each renewal and each read of the leases to a gate.
type guardedLock struct {
	resourcelock.Interface
	gate *gate
}

// Get implements [resourcelock.Interface]. A leader that reads another holder, or no lease, has
// lost the lease.
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

// renew writes the lease. The renewal counts from the time before the request.
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

// release releases a lease of this process, so that the next leader starts at once. No controller
// of this process runs any more.
func (m *manager) release(lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), m.s.LeaderElection.RenewDeadline/2)
	defer cancel()
	err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error { // a renewal may just have been cut short
		held, _, err := lock.Get(ctx)
		if err != nil || held.HolderIdentity != m.identity {
			return err
		}
		return lock.Update(ctx, released(held.LeaderTransitions))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		m.log.Warn("the lease was not given back", "err", err)
	}
}
