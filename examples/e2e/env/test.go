// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// Run is what TestMain of a package does whose tests play on environments: it starts a
// control plane, opens a cluster there, hands it to use, runs the tests, and ends
// all. The result is for [os.Exit]. What keeps the cluster from being opened fails
// the first test that sets an environment.
func Run(m *testing.M, o controlplane.Options, use func(*Cluster)) int {
	return controlplane.Run(m, o, func(c *controlplane.ControlPlane) {
		cluster, err := Open(context.Background(), c)
		if err != nil {
			cluster = &Cluster{ControlPlane: c, err: err}
		}
		use(cluster)
	})
}

// Set sets an environment for a test, which fails if that does not work. When the test has
// ended, the managers that still run are stopped, and it fails if
//
//   - one does not end with status 0,
//   - a bound was broken on the way, see [Env.Figures], or the journal cannot tell,
//   - the API server refused something to them that they must not ask for,
//   - a log or an Event holds something of a Secret, bootstrap tokens included.
//
// Then the environment is closed. If the test has failed, it says where the logs are.
func (h *Cluster) Set(t testing.TB, prefix string, o Options) *Env {
	t.Helper()
	if h.err != nil {
		t.Fatal(h.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := h.New(ctx, prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := s.judge(ctx); err != nil {
			t.Error(err)
		}
		figures, err := s.Figures() //nolint:contextcheck // it gives itself some seconds
		if t.Logf("journal: %s", figures); err != nil {
			t.Error(err)
		}
		if err := o.proven(figures); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("environment: the logs of the managers are in %s", s.Folder())
		}
		if err := s.Close(); err != nil { //nolint:contextcheck // as above
			t.Error(err)
		}
	})
	return s
}

// judge stops the managers, and returns what no scenario allows.
func (s *Env) judge(ctx context.Context) error {
	var errs []error
	for _, m := range s.all() {
		errs = append(errs, m.Err(), m.Stop(ctx))
		if s.leaked(m.Log()) {
			errs = append(errs, fmt.Errorf("%s holds what the Secrets do", m.log))
		}
	}
	refused, err := s.Refused(ctx)
	errs = append(errs, err)
	for _, r := range refused {
		errs = append(errs, fmt.Errorf("%s: refused with %d: %s %s/%s %s %s/%s, asked by %s",
			r.Time.Format(time.StampMilli), r.Code, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name, r.UserAgent))
	}
	events, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	text, err := json.Marshal(events)
	if err == nil && s.leaked(string(text)) {
		errs = append(errs, errors.New("the Events hold what the Secrets do"))
	}
	return errors.Join(append(errs, err)...)
}

// Wait waits until a condition holds, see [Env.Until]. The test fails at once if
// that takes too long.
func (s *Env) Wait(t testing.TB, timeout time.Duration, what string, holds Condition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	began := time.Now()
	if err := s.Until(ctx, what, holds); err != nil {
		t.Fatalf("after %s: %v", time.Since(began).Round(time.Second), err)
	}
	t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
}

// StartManager starts a manager and returns it when it is ready. The test fails at once if
// that does not work.
func (s *Env) StartManager(t testing.TB, name string, flags ...string) *Manager {
	t.Helper()
	m := s.Manager(name, flags...)
	s.Start(t, m)
	return m
}

// Start starts a manager, again as a rule, and returns when it is ready. The test
// fails at once if that does not work.
func (s *Env) Start(t testing.TB, m *Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
}
