// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/permits"
	"github.com/machinist-dev/machinist/permits/runner"
)

// place is a cluster, in a bubble with its own time, whose ledger is open.
type place struct {
	*draintest.Cluster

	t      *testing.T
	client *fake.Clientset
	leases typedcoordinationv1.LeaseInterface
}

// policy has a deadline 10 s before the end of a lease.
var policy = permits.Policy{Limit: 1, TTL: 10 * time.Minute}

func inPlace(t *testing.T, test func(t *testing.T, p *place)) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{Cluster: draintest.New(draintest.Options{}), t: t}
		p.client = p.Clientset()
		p.leases = p.client.CoordinationV1().Leases("kube-system")
		first := p.lock("first")
		p.gets(first)
		require.NoError(t, first.Release(t.Context()))
		p.client.ClearActions()
		test(t, p)
	})
}

// lock returns the lock of a new process.
func (p *place) lock(holder string) *runner.Lock {
	return &runner.Lock{Leases: p.leases, Name: "reboot", Holder: holder, Policy: policy}
}

// within returns a context with a timeout.
func (p *place) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), d)
	p.t.Cleanup(cancel)
	return ctx
}

// gets waits until a process has a permit.
func (p *place) gets(l *runner.Lock) permits.Lease {
	p.t.Helper()
	lease, err := l.Acquire(p.t.Context())
	require.NoError(p.t, err)
	return lease
}

// misses asserts that a process gets no permit for some time.
func (p *place) misses(l *runner.Lock, d time.Duration) {
	p.t.Helper()
	_, err := l.Acquire(p.within(d))
	require.ErrorIs(p.t, err, context.DeadlineExceeded)
}

// holds makes a process acquire a permit at once, and crash.
func (p *place) holds(holder string) permits.Lease {
	p.t.Helper()
	start := time.Now()
	lease := p.gets(p.lock(holder))
	require.Zero(p.t, time.Since(start))
	return lease
}

func (p *place) object() *coordinationv1.Lease {
	o, err := p.leases.Get(p.t.Context(), "reboot", metav1.GetOptions{})
	require.NoError(p.t, err)
	return o
}

// edit changes the object like another client.
func (p *place) edit(change func(o *coordinationv1.Lease)) {
	o := p.object()
	change(o)
	_, err := p.leases.Update(p.t.Context(), o, metav1.UpdateOptions{})
	require.NoError(p.t, err)
}

// refusalOf returns the refusal in an error.
func refusalOf(err error) *permits.Refusal {
	var refusal runner.RefusedError
	if !errors.As(err, &refusal) {
		return &permits.Refusal{}
	}
	return refusal.Refusal
}

func TestAcquire_NewObject_WaitsForTTLAndSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := draintest.New(draintest.Options{}).Client().CoordinationV1().Leases("kube-system")
		start, lock := time.Now(), runner.Lock{Leases: leases, Name: "reboot", Holder: "node-1", Policy: policy}
		_, err := lock.Acquire(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), policy.TTL+10*time.Second)
		require.LessOrEqual(t, time.Since(start), policy.TTL+20*time.Second)
	})
}

// TestAcquire_ContextEnds_ErrorHasHolders asserts that the error has the holders that a process waited for, also if the
// last request failed.
func TestAcquire_ContextEnds_ErrorHasHolders(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lease, lock := p.holds("node-1"), p.lock("node-2")
		var told []string
		lock.Waiting = func(err error) { told = append(told, err.Error()) }
		for _, fails := range []bool{false, true} {
			if fails {
				p.Inject(draintest.Fault{Kind: draintest.Unavailable, Skip: 1})
			}
			_, err := lock.Acquire(p.within(3 * time.Minute))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, []permits.Lease{lease}, refusalOf(err).Holders)
			require.Equal(t, fails, apierrors.IsServiceUnavailable(err), "%v", err)
		}
		end := lease.Expires.Format(time.RFC3339)
		text := `no permit for "node-2" under "reboot": 1 held, limit 1 ("node-1" until ` + end + `); ask again at ` + end
		require.Equal(t, []string{text, text, text + ": the server is currently unable to handle the request (injected)"}, told)
	})
}

func TestAcquire_OutsideWindow_WaitsWithoutPolling(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock := p.lock("node-1")
		lock.Policy.Window = permits.Window{Start: 22 * time.Hour, Length: time.Hour}
		opens := lock.Policy.Window.Opens(time.Now())
		require.False(t, p.gets(lock).Since.Before(opens))
		require.Less(t, time.Since(opens), 6*time.Second)
		require.Len(t, p.client.Actions(), 3, "get, and get and update when it opens")
	})
}

func TestAcquire_WaitingIsOfNoUse_ErrorAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *place, l *runner.Lock)
		is     func(error) bool
	}{
		"no client":    {func(_ *place, l *runner.Lock) { l.Leases = nil }, nil},
		"no name":      {func(_ *place, l *runner.Lock) { l.Name = "" }, nil},
		"no holder":    {func(_ *place, l *runner.Lock) { l.Holder = "" }, nil},
		"no policy":    {func(_ *place, l *runner.Lock) { l.Policy = permits.Policy{} }, nil},
		"limit zero":   {func(_ *place, l *runner.Lock) { l.Policy.Limit = 0 }, func(err error) bool { return refusalOf(err).Reason == "NothingAllowed" }},
		"no rights":    {func(p *place, _ *runner.Lock) { p.Inject(draintest.Fault{Kind: draintest.Forbidden}) }, apierrors.IsForbidden},
		"invalid name": {func(_ *place, l *runner.Lock) { l.Name = "a b" }, apierrors.IsInvalid},
		"edited": {func(p *place, _ *runner.Lock) {
			p.edit(func(o *coordinationv1.Lease) { o.Spec.HolderIdentity = ptr.To("me") })
		}, func(err error) bool { return errors.Is(err, permits.ErrUnreadable) }},
	} {
		t.Run(name, func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *place) {
				lock, start := p.lock("node-1"), time.Now()
				c.change(p, lock)
				_, err := lock.Acquire(p.within(time.Hour))
				require.Error(t, err)
				require.True(t, c.is == nil || c.is(err), "%v", err)
				require.Zero(t, time.Since(start))
				if name != "no rights" {
					before := p.object()
					require.Error(t, lock.Run(p.within(time.Hour), func(context.Context) error { panic("no permit, no work") }))
					require.Equal(t, before, p.object(), "nothing is overwritten")
				}
			})
		})
	}
	_, err := (*runner.Lock)(nil).Acquire(t.Context())
	require.Error(t, err)
}

func TestAcquire_NoResponse_IsTriedAgain(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock, m, told := p.lock("node-1"), &machine{Leases: p.leases}, 0
		lock.Leases = m
		lock.Waiting = func(err error) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			m.deaf.Store(false)
			told++
		}
		m.deaf.Store(true)
		p.misses(lock, 10*time.Second)
		require.Zero(t, told, "it does not wait any longer")
		_, err := lock.Acquire(p.within(40 * time.Second))
		require.NoError(t, err)
		require.Equal(t, 1, told)
	})
}

// TestAcquire_SlowRequests_NoPermitPastItsDeadline asserts that a lease that ended while it was written is not
// returned.
func TestAcquire_SlowRequests_NoPermitPastItsDeadline(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock, m, told := p.lock("node-1"), &machine{Leases: p.leases, slow: 25 * time.Second}, 0
		lock.Policy.TTL, lock.Leases = 30*time.Second, m
		lock.Waiting = func(err error) {
			require.ErrorContains(t, err, "longer than the permit lasts")
			m.slow = 0
			told++
		}
		lease := p.gets(lock)
		require.Equal(t, 1, told)
		require.True(t, time.Now().Before(lock.Policy.Deadline(lease)))
	})
}

// TestAcquire_RestoredBackup_OldHolderWaits asserts that a Lock notices an object that is older than what it
// has read, and that a lease in it counts for nothing.
func TestAcquire_RestoredBackup_OldHolderWaits(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		old, holder := p.lock("node-1"), p.lock("node-2")
		p.gets(old)
		backup := p.object()
		require.NoError(t, old.Release(t.Context()))
		lease := p.gets(holder)
		p.misses(old, time.Second)

		p.edit(func(o *coordinationv1.Lease) { o.Annotations, o.Spec = backup.Annotations, backup.Spec })
		_, err := old.Acquire(p.within(time.Second))
		require.EqualValues(t, "HoldersUnknown", refusalOf(err).Reason)
		require.Equal(t, lease.Since, p.gets(holder).Since)
	})
}

func TestRun_LongWork_RenewsAndDoesNotRelease(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		mine := errors.New("mine")
		require.ErrorIs(t, p.lock("node-1").Run(t.Context(), func(ctx context.Context) error {
			p.misses(p.lock("node-2"), 5*time.Hour) //nolint:contextcheck // another process
			require.NoError(t, ctx.Err())
			return mine
		}), mine)
		p.misses(p.lock("node-2"), 5*time.Minute)
	})
}

// TestRun_NoRenewal_WorkEndsAtDeadline asserts that work ends in time if requests fail or hang, and if the
// clock is set back.
func TestRun_NoRenewal_WorkEndsAtDeadline(t *testing.T) {
	const back = int64(-5 * time.Hour)
	for name, breaks := range map[string]func(p *place, m *machine){
		"unavailable": func(p *place, _ *machine) { p.Inject(draintest.Fault{}) },
		"edited": func(p *place, _ *machine) {
			p.edit(func(o *coordinationv1.Lease) { o.Annotations = nil })
		},
		"no response":                   func(_ *place, m *machine) { m.deaf.Store(true) },
		"clock set back":                func(_ *place, m *machine) { m.step.Store(back) },
		"clock set back during a write": func(_ *place, m *machine) { m.next.Store(back) },
	} {
		t.Run(name, func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *place) {
				lock, m := p.lock("node-1"), &machine{Leases: p.leases}
				lock.Leases, lock.Clock = m, m
				start := time.Now()
				err := lock.Run(p.within(24*time.Hour), func(ctx context.Context) error {
					time.Sleep(time.Minute) // of the bubble
					breaks(p, m)
					<-ctx.Done()
					return ctx.Err()
				})
				require.ErrorIs(t, err, runner.ErrLost)
				require.ErrorIs(t, err, context.Canceled, "the error of work")
				lasted, want := time.Since(start), policy.TTL-10*time.Second
				if m.next.Load() != 0 {
					want += want / 3 // it is the first renewal
				}
				require.LessOrEqual(t, lasted, want)
				require.Greater(t, lasted, want-2*time.Second, "times are rounded down")
			})
		})
	}
}

// machine has a clock that can be set, also during the next write, and a network that may break or be slow.
type machine struct {
	runner.Leases
	clock.RealClock

	deaf       atomic.Bool
	step, next atomic.Int64
	slow       time.Duration // of writes
}

func (m *machine) Now() time.Time { return time.Now().Add(time.Duration(m.step.Load())) }

func (m *machine) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error) {
	if m.deaf.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Leases.Get(ctx, name, opts)
}

func (m *machine) Update(ctx context.Context, o *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	m.step.Store(m.next.Load())
	o, err := m.Leases.Update(ctx, o, opts)
	time.Sleep(m.slow) // of the bubble
	return o, err
}

// TestRun_Released_WorkEndsAtNextRenewal asserts that Run does not acquire a lease again that was released by
// its work, or by another process with the name of the holder.
func TestRun_Released_WorkEndsAtNextRenewal(t *testing.T) {
	for _, same := range []bool{true, false} {
		for _, taken := range []bool{true, false} {
			t.Run(fmt.Sprintf("same process %v, taken %v", same, taken), func(t *testing.T) {
				inPlace(t, func(t *testing.T, p *place) {
					start, lock, by := time.Now(), p.lock("node-1"), p.lock("node-1")
					if same {
						by = lock
					}
					err := lock.Run(p.within(24*time.Hour), func(ctx context.Context) error {
						time.Sleep(time.Minute) // of the bubble
						require.NoError(t, by.Release(ctx))
						if taken {
							p.gets(p.lock("node-2")) //nolint:contextcheck // another process
						}
						<-ctx.Done()
						return nil
					})
					require.ErrorIs(t, err, runner.ErrLost)
					require.Equal(t, taken, strings.Contains(err.Error(), "node-2"), "%v", err)
					require.InDelta(t, (policy.TTL-10*time.Second)/3, time.Since(start), float64(2*time.Second))
					p.holds("node-2")
				})
			})
		}
	}
}

func TestRun_ContextEnds_LeavesNoGoroutine(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) { // the bubble waits for all goroutines
		ctx := p.within(time.Hour)
		err := p.lock("node-1").Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.Equal(t, context.DeadlineExceeded, err)
		require.PanicsWithValue(t, "mine", func() {
			_ = p.lock("node-1").Run(p.within(24*time.Hour), func(context.Context) error { panic("mine") })
		})
	})
}

func TestRelease_ConflictOrLostResponse_IsRetried(t *testing.T) {
	for _, fault := range []draintest.FaultKind{draintest.Conflict, draintest.TimeoutAfterEffect, draintest.Unavailable} {
		t.Run(fault.String(), func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *place) {
				lock := p.lock("node-1")
				p.gets(lock)
				lock.Waiting = func(err error) { require.False(t, apierrors.IsConflict(err), "no news") }
				p.Inject(draintest.Fault{Kind: fault, Verb: "update", Times: 1})
				require.NoError(t, lock.Release(t.Context()))
				p.holds("node-2")
				require.NoError(t, lock.Release(t.Context()), "twice")
				require.NoError(t, p.lock("node-3").Release(t.Context()), "without a lease")
				require.Contains(t, *p.object().Spec.HolderIdentity, "node-2")
			})
		})
	}
}

// TestRelease_LostResponse_LeaseIsNotKept asserts that a lease whose release may have failed is not claimed
// when the object is new.
func TestRelease_LostResponse_LeaseIsNotKept(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock := p.lock("node-1")
		p.gets(lock)
		remove := p.Inject(draintest.Fault{Kind: draintest.TimeoutAfterEffect, Verb: "update"}, draintest.Fault{Verb: "get", Skip: 1})
		require.ErrorIs(t, lock.Release(p.within(time.Second)), context.DeadlineExceeded)
		remove()
		p.holds("node-2")
		require.NoError(t, p.leases.Delete(t.Context(), "reboot", metav1.DeleteOptions{}))
		p.misses(lock, time.Minute)
	})
}

// TestRelease_HangingRenewal_EndsWithItsContext has an API server that does not answer a renewal.
func TestRelease_HangingRenewal_EndsWithItsContext(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock, m := p.lock("node-1"), &machine{Leases: p.leases}
		lock.Leases = m
		require.NoError(t, lock.Run(p.within(time.Hour), func(ctx context.Context) error {
			m.deaf.Store(true)
			time.Sleep((policy.TTL-10*time.Second)/3 + time.Second) // of the bubble
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			start := time.Now()
			require.ErrorIs(t, lock.Release(short), context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
			m.deaf.Store(false)
			return lock.Release(ctx)
		}))
		p.holds("node-2")
	})
}

func TestLock_Requests_GetCreateUpdateOfOneObject(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		require.NoError(t, p.leases.Delete(t.Context(), "reboot", metav1.DeleteOptions{}))
		p.client.ClearActions()
		lock := p.lock("node-1")
		require.NoError(t, lock.Run(t.Context(), func(context.Context) error { return nil }))
		require.NoError(t, lock.Release(t.Context()))
		verbs := map[string]bool{}
		for _, action := range p.client.Actions() {
			require.Equal(t, "leases", action.GetResource().Resource)
			require.Equal(t, "kube-system", action.GetNamespace())
			verbs[action.GetVerb()] = true
		}
		require.Equal(t, map[string]bool{"get": true, "create": true, "update": true}, verbs)
	})
}

func TestLock_Object_KeepsWhatOthersWrote(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.edit(func(o *coordinationv1.Lease) {
			o.Labels = map[string]string{"team": "a"}
			o.Annotations["note"] = "b"
		})
		p.holds("node-1")
		require.Equal(t, "a", p.object().Labels["team"])
		require.Equal(t, "b", p.object().Annotations["note"])
	})
}

func TestLock_Concurrent_IsSafe(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		lock := p.lock("node-1")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 5 {
					if _, err := lock.Acquire(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		require.NoError(t, lock.Release(t.Context()))
	})
}

func TestRun_NoWork_ErrorWithoutAPermit(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		require.ErrorContains(t, p.lock("a").Run(t.Context(), nil), "no work")
		require.NoError(t, p.lock("b").Run(t.Context(), func(context.Context) error { return nil }), "no permit was taken")
	})
}
