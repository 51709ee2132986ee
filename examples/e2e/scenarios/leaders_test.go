// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// leads holds when a log says so often that a manager has begun to work.
func leads(log func() string, times int) env.Condition {
	return func(context.Context) (string, error) {
		if n := strings.Count(log(), "msg=works"); n < times {
			return fmt.Sprintf("has begun to work %d times of %d", n, times), nil
		}
		return "", nil
	}
}

// ledAfter holds when a manager leads that is not the given holder of the lease.
func ledAfter(s *env.Env, was string) env.Condition {
	return func(ctx context.Context) (string, error) {
		now, err := holderOf(ctx, s)
		if err != nil || now == "" || now == was {
			return "no other manager leads", err
		}
		return "", nil
	}
}

// takenOver starts two managers, of which one acts, and the other takes over.
func takenOver(t *testing.T, by composition) {
	const lease = 30 * time.Second // long against all that a manager does
	s := cluster.Set(t, "leaders", by.options())
	flags := []string{"--leader-elect-lease-duration=" + lease.String(), "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=1s"}
	one := s.StartManager(t, "one", flags...)
	s.Wait(t, patience, "one leads", ledAfter(s, ""))
	two := s.StartManager(t, "two", flags...)
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	for _, m := range []*env.Manager{one, two} {
		for _, path := range []string{"/healthz", "/readyz"} {
			s.Wait(t, patience, path, func(ctx context.Context) (string, error) { // a leader fills its caches first
				status, text, err := m.Health(ctx, path)
				if err == nil && (status != http.StatusOK || !strings.EqualFold(text, "OK")) {
					return fmt.Sprint(status, " ", text), nil
				}
				return "", err
			})
		}
	}

	require.NoError(t, s.Class(ctx, "small"))
	_, err := api.Create(ctx, s.Machine("a", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the machine runs", running(s, "a"))
	require.True(t, by.acted(one))
	require.False(t, by.acted(two))

	was := holder(t, s)
	stop(t, one)
	require.NotEqual(t, was, holder(t, s), "the lease was given back")
	s.Wait(t, patience, "two leads", ledAfter(s, was))
	_, err = api.Create(ctx, s.Machine("b", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the next machine runs", running(s, "b"))
	require.True(t, by.acted(two))

	s.Start(t, one)
	began := time.Now()
	was = holder(t, s)
	two.Kill()
	s.Wait(t, patience, "one leads again", ledAfter(s, was))
	require.Greater(t, time.Since(began), lease/2, "a lease that was not given back holds")
	removeAll(t, s)
}

// holder returns the identity of the leader, or nothing if the lease was given back.
func holder(t *testing.T, s *env.Env) string {
	t.Helper()
	now, err := holderOf(t.Context(), s)
	require.NoError(t, err)
	return now
}

func holderOf(ctx context.Context, s *env.Env) (string, error) {
	lease, err := s.Client.CoordinationV1().Leases(s.ManagerNamespace()).Get(ctx, "machine-controller", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// stop stops a manager, which has to end well.
func stop(t *testing.T, m *env.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, m.Stop(ctx))
}
