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

// acts reports whether a manager has done anything to machine objects.
func acts(m *env.Manager) bool { return strings.Contains(m.Log(), "msg=decided") }

func TestManagers_Two_OneActsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second // long against all that a manager does
	s := cluster.Set(t, "leaders", fastOptions())
	flags := []string{"--leader-elect-lease-duration=" + lease.String(), "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=1s"}
	one := s.StartManager(t, "one", flags...)
	s.Wait(t, patience, "one leads", leads(one.Log, 1))
	two := s.StartManager(t, "two", flags...)
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	for _, m := range []*env.Manager{one, two} {
		for _, path := range []string{"/healthz", "/readyz"} {
			status, text, err := m.Health(ctx, path)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
			require.Equal(t, "OK", text)
		}
	}

	require.NoError(t, s.Class(ctx, "small"))
	_, err := api.Create(ctx, s.Machine("a", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the machine runs", running(s, "a"))
	require.True(t, acts(one))
	require.False(t, acts(two))

	was := holder(t, s)
	stop(t, one)
	require.NotEqual(t, was, holder(t, s), "the lease was given back")
	s.Wait(t, patience, "two leads", leads(two.Log, 1))
	_, err = api.Create(ctx, s.Machine("b", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the next machine runs", running(s, "b"))
	require.True(t, acts(two))

	s.Start(t, one)
	began := time.Now()
	two.Kill()
	s.Wait(t, patience, "one leads again", leads(one.Log, 2))
	require.Greater(t, time.Since(began), lease/2, "a lease that was not given back holds")
	removeAll(t, s)
}

// holder returns the identity of the leader, or nothing if the lease was given back.
func holder(t *testing.T, s *env.Env) string {
	t.Helper()
	lease, err := s.Client.CoordinationV1().Leases(s.ManagerNamespace()).Get(t.Context(), "machine-controller", metav1.GetOptions{})
	require.NoError(t, err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// stop stops a manager, which has to end well.
func stop(t *testing.T, m *env.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, m.Stop(ctx))
}
