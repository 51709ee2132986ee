// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/safety"
)

// hanging sends requests to a server that does not answer.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestProber_ServersHang_FreezeAfterTheTimeout probes two servers that do not answer.
func TestProber_ServersHang_FreezeAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, hangs := &rest.Config{Host: "http://server.example", QPS: -1}, &http.Client{Transport: hanging{}}
		machines, err := versioned.NewForConfigAndClient(config, hangs)
		require.NoError(t, err)
		nodes, err := kubernetes.NewForConfigAndClient(config, hangs)
		require.NoError(t, err)
		var decided []safety.FreezeDecision
		p := &Prober{Requests: client.New(machines, nodes), Decided: func(d safety.FreezeDecision) { decided = append(decided, d) }}
		require.False(t, p.Freeze().Frozen)
		begin := time.Now()
		probes := p.probe(t.Context())
		require.Equal(t, probeTimeout, time.Since(begin), "both are probed concurrently")
		require.Len(t, probes, 2)
		for _, probe := range probes {
			require.ErrorIs(t, probe.Err, context.DeadlineExceeded, probe.Server)
		}
		next, err := p.Reconcile(t.Context())
		require.NoError(t, err)
		require.True(t, next.After(time.Now()))
		require.True(t, p.Freeze().Frozen, "a process begins frozen until the servers answer")
		require.True(t, decided[0].Began)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Reconcile(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, decided, 1, "a canceled probe proves nothing")
	})
}
