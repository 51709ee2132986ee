// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds of a request. A scrape of many machines fits into answerTime.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second
	answerTime  = 30 * time.Second
	idleTime    = 2 * time.Minute // longer than the usual time between two scrapes
	headerBytes = 16 << 10
)

// boundedServer returns a server with time limits for slow clients. It serves neither request
// bodies nor HTTP/2, since no path needs them.
func boundedServer(handler http.Handler) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: withoutBody(handler), Protocols: protocols, MaxHeaderBytes: headerBytes,
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
	}
}

// withoutBody refuses requests with a body, without reading it.
func withoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			http.Error(w, "a request with a body is not served", http.StatusRequestEntityTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// handler returns the handler of the public port. With TLS, /metrics is for callers that the
// control cluster authorizes.
func (m *manager) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer(m.health.healthy, "Unhealthy", nil))
	mux.HandleFunc("GET /readyz", answer(m.health.ready, "Not ready", m.health.details))
	metrics := m.health.metrics.Handler()
	if m.s.TLSCertFile != "" {
		metrics = newAuthorizer(m.clients.reviews, m.log).guard(metrics)
	}
	mux.Handle("GET "+metricsPath, metrics)
	return mux
}

// serveAll serves the public port, and the profiles if the flags ask for them, until the returned
// function is called. It calls fail if a server fails later.
func (m *manager) serveAll(fail func(error)) (end func(), err error) {
	listener, err := m.listen()
	if err != nil {
		return nil, fmt.Errorf("health checks: %w", err)
	}
	address := listener.Addr()
	if m.s.TLSCertFile != "" {
		certificate, err := loadCertificate(m.s.TLSCertFile, m.s.TLSPrivateKeyFile, m.log)
		if err != nil {
			_ = listener.Close()
			return nil, err
		}
		listener = tls.NewListener(listener, certificate.config())
	} else if ip := net.ParseIP(m.s.Address); ip != nil && !ip.IsLoopback() {
		m.log.Warn("every client that reaches the port can read the metrics: without TLS no token is asked for",
			"address", address.String(), "flags", "--tls-cert-file --tls-private-key-file")
	}
	servers := []*http.Server{boundedServer(m.handler())}
	listeners := []net.Listener{listener}
	if m.s.Profiling {
		l, err := m.profiles()
		if err != nil {
			_ = listener.Close()
			return nil, fmt.Errorf("profiles: %w", err)
		}
		m.log.Info("serves profiles", "address", l.Addr().String(), "contention", m.s.ContentionProfiling)
		servers, listeners = append(servers, newProfiles()), append(listeners, l)
	}
	contention := profileContention(m.s.ContentionProfiling)
	m.log.Info("serves", "address", address.String(), "tls", m.s.TLSCertFile != "")
	stop := serve(servers, listeners, fail)
	return func() { stop(); contention() }, nil
}

// serve runs each server on its listener until the returned function is called.
func serve(servers []*http.Server, listeners []net.Listener, fail func(error)) (end func()) {
	var serving sync.WaitGroup
	for i, s := range servers {
		serving.Go(func() {
			if err := s.Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("health checks: %w", err))
			}
		})
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, s := range servers {
			if s.Shutdown(ctx) != nil {
				_ = s.Close()
			}
		}
		serving.Wait()
	}
}
