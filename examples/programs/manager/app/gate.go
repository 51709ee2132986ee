// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// gate decides whether a write or a driver call may begin. It is open while the last successful
// renewal of the lease is younger than the renew deadline. It uses the monotonic clock of this
// process, which advances while the process is stopped by a signal. A closed gate never opens
// again. It is safe for concurrent use.
type gate struct {
	counts time.Duration // how long a renewal counts; zero means no election, and a gate that is always open
	now    func() time.Time

	mu       sync.Mutex
	tell     func(why error, inFlight []string) // called once, when the lease is lost
	renewed  time.Time                          // just before the last successful renewal was sent; zero before the first
	shut     error                              // why nothing begins any more
	timer    *time.Timer
	inFlight map[*string]bool // names of what has begun and has not ended
}

func newGate(election options.LeaderElection) *gate {
	g := &gate{now: time.Now, inFlight: map[*string]bool{}}
	if election.LeaderElect {
		g.counts = election.RenewDeadline
	}
	return g
}

var (
	errStandby   = errors.New("this manager does not lead")
	errGivenBack = errors.New("this manager has given its lease back")
	errTooLate   = errors.New("the answer of the API server came after the renew deadline")
)

// onLoss sets the function that is called when the lease is lost, with the reason and the names of
// the requests and driver calls in flight.
func (g *gate) onLoss(tell func(why error, inFlight []string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell = tell
}

// renew records a successful renewal, or acquisition, that was sent at a time. It returns an error
// if the answer came too late to count.
func (g *gate) renew(sent time.Time) error {
	if err := g.lapsed(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.counts - g.now().Sub(sent)
	if left <= 0 {
		return errTooLate
	}
	g.renewed = sent
	if g.timer == nil {
		g.timer = time.AfterFunc(left, func() { _ = g.check() })
	} else {
		g.timer.Reset(left)
	}
	return nil
}

// check returns why no write or driver call may begin now, or nil.
func (g *gate) check() error {
	g.mu.Lock()
	if g.shut != nil || g.counts == 0 {
		defer g.mu.Unlock()
		return g.shut
	}
	if g.renewed.IsZero() {
		defer g.mu.Unlock()
		return errStandby
	}
	age := g.now().Sub(g.renewed)
	g.mu.Unlock()
	if age >= g.counts {
		return g.lose(fmt.Errorf("%w: not renewed for %s, the renew deadline is %s", ErrLeaseLost, age.Round(time.Millisecond), g.counts))
	}
	return nil
}

// lapsed is check without an error for a manager that was never the leader.
func (g *gate) lapsed() error {
	if err := g.check(); !errors.Is(err, errStandby) {
		return err
	}
	return nil
}

// leads reports whether the lease is acquired, and neither lost nor released.
func (g *gate) leads() bool { return g.counts > 0 && g.check() == nil }

// state returns whether this manager is the leader, and the time of the last renewal. Without an
// election it is always the leader.
func (g *gate) state() (leads bool, renewed time.Time) {
	leads = g.check() == nil
	g.mu.Lock()
	defer g.mu.Unlock()
	return leads, g.renewed
}

// lose closes the gate for good, and returns why it is closed.
func (g *gate) lose(why error) error {
	tell, inFlight := g.close(why)
	if tell != nil {
		tell(why, inFlight)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// lost returns why the lease was lost, or nil.
func (g *gate) lost() error {
	if err := g.check(); errors.Is(err, ErrLeaseLost) {
		return err
	}
	return nil
}

// giveBack closes the gate for good before the lease is released.
func (g *gate) giveBack() { g.close(errGivenBack) }

func (g *gate) close(why error) (tell func(error, []string), inFlight []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		return nil, nil
	}
	g.shut = why
	if g.timer != nil {
		g.timer.Stop()
	}
	return g.tell, g.running()
}

// begin checks whether a request or driver call may begin, and counts it until end is called.
func (g *gate) begin(name string) (end func(), err error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		return nil, g.shut
	}
	g.inFlight[&name] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.inFlight, &name)
	}, nil
}

// running returns the sorted names of the requests and calls in flight. The caller holds mu.
func (g *gate) running() []string {
	names := make([]string, 0, len(g.inFlight))
	for name := range g.inFlight {
		names = append(names, *name)
	}
	slices.Sort(names)
	return names
}

// calls returns the sorted names of the requests and calls in flight.
func (g *gate) calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running()
}

// guard returns a copy of a config whose clients write only while the gate is open. The check is
// below the rate limiters and retries of client-go. Connections check again at each write, since a
// request may wait for a connection or a repetition inside of the HTTP transport.
func (g *gate) guard(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &guardedConn{Conn: connection, gate: g}, nil
	}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guardedTransport{next: next, gate: g} })
	return c
}

// guardedTransport refuses writes while the gate is closed.
type guardedTransport struct {
	next http.RoundTripper
	gate *gate
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *guardedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return t.next.RoundTrip(r)
	}
	end, err := t.gate.begin(r.Method + " " + r.URL.Path)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	defer end()
	response, err := t.next.RoundTrip(r)
	if err != nil {
		// The connection that refused to write is closed, and its reader may report that first.
		if lost := t.gate.lapsed(); lost != nil && !errors.Is(err, lost) {
			err = fmt.Errorf("%w: %w", lost, err)
		}
	}
	return response, err
}

// guardedConn is a connection that sends nothing after the gate has closed. A standby may send,
// since it reads.
type guardedConn struct {
	net.Conn
	gate *gate
}

// Write implements [net.Conn].
func (c *guardedConn) Write(p []byte) (int, error) {
	if err := c.gate.lapsed(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
