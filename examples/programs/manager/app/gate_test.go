// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// stopwatch is a clock that advances only when it is told, as it looks to a process
// that was stopped: its timers have not fired yet.
type stopwatch struct{ at atomic.Int64 }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *stopwatch) now() time.Time          { return epoch.Add(time.Duration(s.at.Load())) }
func (s *stopwatch) advance(d time.Duration) { s.at.Add(int64(d)) }

const renewDeadline = 10 * time.Second

// newTestGate returns a gate of a manager that does not lead yet.
func newTestGate(t *testing.T) (*gate, *stopwatch) {
	t.Helper()
	clock := &stopwatch{}
	g := newGate(options.LeaderElection{LeaderElect: true, RenewDeadline: renewDeadline})
	g.now = clock.now
	t.Cleanup(g.giveBack)
	return g, clock
}

func TestGate_RenewalAsOldAsDeadline_ShutsForGood(t *testing.T) {
	g, clock := newTestGate(t)
	var told []string
	losses := 0
	g.onLoss(func(why error, inFlight []string) {
		require.ErrorIs(t, why, ErrLeaseLost)
		losses++
		told = inFlight
	})
	require.ErrorIs(t, g.check(), errStandby)
	require.NoError(t, g.renew(clock.now()))
	for _, name := range []string{"b", "a", "over"} {
		end, err := g.begin(name)
		require.NoError(t, err)
		if name == "over" {
			end()
		}
	}
	clock.advance(renewDeadline - 1)
	require.NoError(t, g.check())
	require.NoError(t, g.renew(clock.now()))
	clock.advance(renewDeadline - 1)
	require.NoError(t, g.check(), "counted from the last renewal")
	require.Zero(t, losses)
	clock.advance(1)
	_, err := g.begin("late")
	require.ErrorIs(t, err, ErrLeaseLost)
	require.Equal(t, []string{"a", "b"}, told)
	require.ErrorIs(t, g.renew(clock.now()), ErrLeaseLost, "a gate that has shut stays so")
	require.ErrorIs(t, g.check(), ErrLeaseLost)
	require.Equal(t, 1, losses)
}

func TestGate_SlowRenewal_CountsFromBeforeItsRequest(t *testing.T) {
	g, clock := newTestGate(t)
	lock := &guardedLock{gate: g}
	require.NoError(t, lock.renew(func() error { clock.advance(4 * time.Second); return nil }))
	clock.advance(6*time.Second - 1)
	require.NoError(t, g.check())
	clock.advance(1)
	require.ErrorIs(t, g.check(), ErrLeaseLost)
	require.ErrorIs(t, lock.renew(func() error { t.Fatal("the lease was written"); return nil }), ErrLeaseLost)
}

func TestGate_AcquisitionAnsweredTooLate_StandsBy(t *testing.T) {
	g, clock := newTestGate(t)
	lock := &guardedLock{gate: g}
	require.ErrorIs(t, lock.renew(func() error { clock.advance(renewDeadline); return nil }), errTooLate)
	require.ErrorIs(t, g.check(), errStandby)
	require.NoError(t, lock.renew(func() error { return nil }), "the next one counts")
	require.NoError(t, g.check())
}

func TestGate_NoRenewal_TimerShutsIt(t *testing.T) {
	g := newGate(options.LeaderElection{LeaderElect: true, RenewDeadline: time.Millisecond})
	lost := make(chan error, 1)
	g.onLoss(func(why error, _ []string) { lost <- why })
	if g.renew(time.Now()) == nil { // or a millisecond is over already
		require.ErrorIs(t, <-lost, ErrLeaseLost)
	}
}

func TestGate_NoElection_AlwaysOpen(t *testing.T) {
	g := newGate(options.LeaderElection{})
	require.NoError(t, g.check())
	require.NoError(t, g.lapsed())
	require.False(t, g.leads())
	g.giveBack()
}

// server counts the requests that arrive.
type server struct {
	*httptest.Server
	arrived atomic.Int64
}

// newServer answers requests with a function.
func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived.Add(1)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// client returns a client of the server behind a gate.
func (s *server) client(t *testing.T, g *gate, change ...func(*rest.Config)) kubernetes.Interface {
	t.Helper()
	config := &rest.Config{Host: s.URL, QPS: 1000, Burst: 1000}
	for _, f := range change {
		f(config)
	}
	config = g.guard(config)
	transport, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	require.NoError(t, err)
	return client
}

func created(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`))
}

func write(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Secrets("n").Create(ctx, &corev1.Secret{}, metav1.CreateOptions{})
	return err
}

func TestGate_Requests_StandbyReadsAndLeaderWrites(t *testing.T) {
	g, clock := newTestGate(t)
	s := newServer(t, created)
	client, ctx := s.client(t, g), t.Context()
	secrets := client.CoreV1().Secrets("n")
	writes := map[string]func() error{
		"create": func() error { return write(ctx, client) },
		"update": func() error {
			_, err := secrets.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.UpdateOptions{})
			return err
		},
		"patch": func() error {
			_, err := secrets.Patch(ctx, "a", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"delete": func() error { return secrets.Delete(ctx, "a", metav1.DeleteOptions{}) },
		"deletecollection": func() error {
			return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	}
	for verb, f := range writes {
		require.ErrorIs(t, f(), errStandby, verb)
	}
	require.Zero(t, s.arrived.Load())
	_, err := secrets.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err, "a standby reads")

	require.NoError(t, g.renew(clock.now()))
	for verb, f := range writes {
		require.NoError(t, f(), verb)
	}
	before := s.arrived.Load()
	clock.advance(renewDeadline)
	for verb, f := range writes {
		require.ErrorIs(t, f(), ErrLeaseLost, verb)
	}
	_, err = secrets.Get(ctx, "a", metav1.GetOptions{})
	require.ErrorIs(t, err, ErrLeaseLost, "nothing at all is sent")
	require.Equal(t, before, s.arrived.Load())
}

func TestGate_RequestsInRateLimiterDuringPause_AreRefused(t *testing.T) {
	g, clock := newTestGate(t)
	require.NoError(t, g.renew(clock.now()))
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		clock.advance(renewDeadline) // the process is stopped, the first request is out
		created(w, r)
	})
	client := s.client(t, g, func(c *rest.Config) { c.QPS, c.Burst = 100, 1 })
	var writing sync.WaitGroup
	var refused atomic.Int64
	for range 10 {
		writing.Go(func() {
			if write(t.Context(), client) != nil {
				refused.Add(1)
			}
		})
	}
	writing.Wait()
	require.EqualValues(t, 1, s.arrived.Load())
	require.EqualValues(t, 9, refused.Load())
}

func TestGate_RepetitionAfterPause_IsRefused(t *testing.T) {
	g, clock := newTestGate(t)
	require.NoError(t, g.renew(clock.now()))
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		clock.advance(renewDeadline)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	require.ErrorIs(t, write(t.Context(), s.client(t, g)), ErrLeaseLost)
	require.EqualValues(t, 1, s.arrived.Load())
}

func TestGate_RequestWaitingForConnectionDuringPause_IsNotSent(t *testing.T) {
	g, clock := newTestGate(t)
	require.NoError(t, g.renew(clock.now()))
	s := newServer(t, created)
	client := s.client(t, g, func(c *rest.Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			defer clock.advance(renewDeadline)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	require.ErrorIs(t, write(t.Context(), client), ErrLeaseLost)
	require.Zero(t, s.arrived.Load())
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestGate_RequestFailsAfterTheLoss_ErrorNamesBoth(t *testing.T) {
	g, clock := newTestGate(t)
	require.NoError(t, g.renew(clock.now()))
	transport := &guardedTransport{gate: g, next: roundTripper(func(*http.Request) (*http.Response, error) {
		clock.advance(renewDeadline)
		return nil, net.ErrClosed
	})}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com", nil)
	require.NoError(t, err)
	_, err = transport.RoundTrip(request) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, ErrLeaseLost)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestGate_RequestInFlight_IsNamed(t *testing.T) {
	g, clock := newTestGate(t)
	require.NoError(t, g.renew(clock.now()))
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, []string{"POST /api/v1/namespaces/n/secrets"}, g.calls())
		created(w, r)
	})
	require.NoError(t, write(t.Context(), s.client(t, g)))
	require.Empty(t, g.calls())
}
