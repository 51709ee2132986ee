// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/machinist-dev/machinist/examples/manager/metrics"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// health is what a manager tells of itself over HTTP.
type health struct {
	lease   *leaderelection.HealthzAdaptor
	metrics *metrics.Metrics

	mu       sync.Mutex
	standing bool // stands by
	filled   bool // leads, and its caches are filled
	stopping bool
	freeze   machine.Freeze
}

func newHealth(m *metrics.Metrics) *health {
	return &health{lease: leaderelection.NewLeaderHealthzAdaptor(0), metrics: m}
}

func (h *health) standBy() { h.set(func() { h.standing = true }) }
func (h *health) lead()    { h.set(func() { h.standing = false }) }
func (h *health) fill()    { h.set(func() { h.filled = true }) }
func (h *health) stop()    { h.set(func() { h.stopping = true }) }

// probed is told what follows from a probe of the API servers.
func (h *health) probed(d safety.FreezeDecision) {
	h.set(func() { h.freeze = d.Freeze })
	h.metrics.Probed(d)
}

func (h *health) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

var (
	errStopping = errors.New("is stopping")
	errStarting = errors.New("waits for the API server, or fills its caches")
)

// healthy says why the process should be ended, if so.
func (h *health) healthy() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return errStopping
	}
	return h.lease.Check(nil)
}

// ready says why this manager cannot do its part, if so.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopping:
		return errStopping
	case h.filled && h.freeze.Frozen:
		return fmt.Errorf("frozen since %s: %s: nothing is created, failed or replaced", h.freeze.Since.UTC().Format(time.RFC3339), h.freeze.Message)
	case h.standing || h.filled:
		return nil
	default:
		return errStarting
	}
}

// serve answers health checks until the returned function is called. A server
// that fails is told of.
func (h *health) serve(l net.Listener, fail func(error)) (end func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer(h.healthy, "Unhealthy"))
	mux.HandleFunc("GET /readyz", answer(h.ready, "Not ready"))
	mux.Handle("GET /metrics", h.metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("health checks: %w", err))
		}
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		serving.Wait()
	}
}

// answer tells the result of a check.
func answer(check func() error, bad string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text := "OK"
		if err := check(); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			text = fmt.Sprintf("%s: %v", bad, err)
		}
		_, _ = fmt.Fprintln(w, text)
	}
}
