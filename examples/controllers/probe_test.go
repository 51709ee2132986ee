// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// hanging is a server that never answers.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestProbe_ServersHang_EndsAfterDeadline probes two servers that do not answer. Only the clients
// for probes are set.
func TestProbe_ServersHang_EndsAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, client := &rest.Config{Host: "http://server.example", QPS: -1}, &http.Client{Transport: hanging{}}
		machines, err := versioned.NewForConfigAndClient(config, client)
		require.NoError(t, err)
		nodes, err := kubernetes.NewForConfigAndClient(config, client)
		require.NoError(t, err)
		r := &freezes{cfg: &Config{Target: nodes, ProbeMachines: machines, ProbeTarget: nodes}}
		begin := time.Now()
		probes := r.probe(t.Context())
		require.Equal(t, probeTimeout, time.Since(begin), "both are probed concurrently")
		require.Len(t, probes, 2)
		for _, p := range probes {
			require.ErrorIs(t, p.Err, context.DeadlineExceeded, p.Server)
		}
	})
}
