// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/examples/manager/metrics"
	"github.com/machinist-dev/machinist/examples/manager/options"
)

// kubeconfig writes a file that leads to a server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server+`"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`), 0o600))
	return path
}

func TestClusters_Flags_ControlAndTarget(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", kubeconfig(t, "https://not-asked-for"))
	control, target := kubeconfig(t, "https://control"), kubeconfig(t, "https://target")
	cases := []struct {
		name                    string
		control, target         string
		wantControl, wantTarget string
		err                     error
	}{
		{"two files are two clusters", control, target, "https://control", "https://target", nil},
		{"without control, the target is both", "", target, "https://target", "https://target", nil},
		{"there may be no target", control, options.None, "https://control", "", nil},
		{"the control cluster may be the one around", options.InCluster, target, "", "", rest.ErrNotInCluster},
		{"and so may be both", "", "", "", "", rest.ErrNotInCluster},
		{"or the target", control, "", "", "", rest.ErrNotInCluster},
		{"or the control cluster alone", options.InCluster, options.None, "", "", rest.ErrNotInCluster},
		{"a file that is missing is an error", filepath.Join(t.TempDir(), "none"), options.None, "", "", os.ErrNotExist},
		{"and so is that of the target", control, filepath.Join(t.TempDir(), "none"), "", "", os.ErrNotExist},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := options.NewMCServer()
			s.ControlKubeconfig, s.TargetKubeconfig = c.control, c.target
			got, other, err := configs(s)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				require.ErrorContains(t, err, "-kubeconfig: ")
				_, err = newClients(s, newGate(s.LeaderElection), metrics.New(metrics.Options{}))
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.wantControl, got.Host)
			if c.wantTarget == "" {
				require.Nil(t, other)
			} else {
				require.Equal(t, c.wantTarget, other.Host)
			}
		})
	}
}

func TestClients_Rates_AreSeparate(t *testing.T) {
	s := options.NewMCServer()
	s.ControlKubeconfig, s.TargetKubeconfig = kubeconfig(t, "https://control"), options.None
	c, err := newClients(s, newGate(s.LeaderElection), metrics.New(metrics.Options{}))
	require.NoError(t, err)
	defer c.close()
	require.True(t, c.target == nil, "an interface that holds a nil pointer is not nil")
	limiter := func(k kubernetes.Interface) any { return k.CoreV1().RESTClient().GetRateLimiter() }
	require.NotSame(t, limiter(c.lease), limiter(c.control))
	require.NotSame(t, limiter(c.events), limiter(c.control))
	require.NotSame(t, c.machines.MachineV1alpha1().RESTClient().GetRateLimiter(), c.sets.MachineV1alpha1().RESTClient().GetRateLimiter(), "sets do not wait for machines")
	require.InDelta(t, s.KubeAPIQPS, c.control.CoreV1().RESTClient().GetRateLimiter().QPS(), 0)
	require.NotNil(t, c.machines.Discovery())
	http, ok := c.lease.CoordinationV1().RESTClient().(*rest.RESTClient)
	require.True(t, ok)
	require.Equal(t, 4*time.Second, http.Client.Timeout, "so that two fit between a renewal and the renew deadline")
}
