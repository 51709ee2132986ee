// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
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
	require.Nil(t, c.probeMachines.MachineV1alpha1().RESTClient().GetRateLimiter(), "a probe waits for no other request")
	require.NotNil(t, c.machines.Discovery())
	lease, ok := c.lease.CoordinationV1().RESTClient().(*rest.RESTClient)
	require.True(t, ok)
	require.Equal(t, 4*time.Second, lease.Client.Timeout, "so that two fit between a renewal and the renew deadline")
}

// TestClients_Requests_HaveTheUserAgentOfTheirPurpose sends one request by each client.
func TestClients_Requests_HaveTheUserAgentOfTheirPurpose(t *testing.T) {
	var agents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.UserAgent()) // the requests follow each other
		http.NotFound(w, r)
	}))
	defer server.Close()
	s := options.NewMCServer()
	s.ControlKubeconfig, s.TargetKubeconfig = kubeconfig(t, server.URL), kubeconfig(t, server.URL)
	c, err := newClients(s, newGate(s.LeaderElection), metrics.New(metrics.Options{}))
	require.NoError(t, err)
	defer c.close()
	for _, machines := range []versioned.Interface{c.machines, c.sets, c.probeMachines} {
		_, err := machines.MachineV1alpha1().Machines("default").Get(t.Context(), "m", metav1.GetOptions{})
		require.Error(t, err)
	}
	for _, core := range []kubernetes.Interface{c.control, c.events, c.lease, c.leaseWatch, c.reviews, c.target, c.probeTarget} {
		_, err := core.CoreV1().Namespaces().Get(t.Context(), "n", metav1.GetOptions{})
		require.Error(t, err)
	}
	require.Equal(t, []string{
		"machinist/machines", "machinist/sets", "machinist/probe",
		"machinist/secrets", "machinist/events", "machinist/leader-election", "machinist/leader-election", "machinist/reviews", "machinist/nodes", "machinist/probe",
	}, agents)
}
