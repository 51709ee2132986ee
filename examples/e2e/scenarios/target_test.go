// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// gateway passes connections on to an API server. While it is blocked, connections
// stay open and nothing passes, as with a server that is stopped by a signal.
type gateway struct {
	address string // of the API server
	blocked sync.RWMutex

	mu    sync.Mutex
	conns []net.Conn
}

// openGateway returns a gateway and the kubeconfig of a cluster admin that goes
// through it.
func openGateway(t *testing.T) (g *gateway, kubeconfig string) {
	t.Helper()
	config := cluster.ControlPlane.Config()
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g = &gateway{address: server.Host}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			g.serve(in)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range g.conns {
			_ = c.Close()
		}
	})
	server.Host = listener.Addr().String()
	config.Host = server.String()
	text, err := controlplane.Kubeconfig(config)
	require.NoError(t, err)
	kubeconfig = filepath.Join(t.TempDir(), "gateway.kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, text, 0o600))
	return g, kubeconfig
}

func (g *gateway) serve(in net.Conn) {
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", g.address)
	if err != nil {
		_ = in.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, in, out)
	g.mu.Unlock()
	go g.pass(in, out)
	go g.pass(out, in)
}

// pass copies what one side sends to the other, until one of them ends.
func (g *gateway) pass(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32*1024)
	for {
		n, err := from.Read(buffer)
		g.blocked.RLock()
		_, writeErr := to.Write(buffer[:n])
		g.blocked.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

// nodesAre holds when all Nodes of an environment have the given status of Ready.
func nodesAre(s *env.Env, names []string, status corev1.ConditionStatus) env.Condition {
	return func(ctx context.Context) (string, error) {
		for _, name := range names {
			node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "nothing is known of node " + name, err
			}
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != status {
					return fmt.Sprintf("node %s is %s", name, c.Status), nil
				}
			}
		}
		return "", nil
	}
}

// controllerFrozen holds when a deployment has the condition ControllerFrozen, or has not.
func controllerFrozen(s *env.Env, name string, frozen bool) env.Condition {
	return func(ctx context.Context) (string, error) {
		d, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "deployment " + name + " is not known", err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == v1alpha1.MachineDeploymentControllerFrozen {
				if frozen {
					return "", nil
				}
				return fmt.Sprintf("deployment %s: %s: %s", name, c.Reason, c.Message), nil
			}
		}
		if frozen {
			return fmt.Sprintf("deployment %s has no condition %s", name, v1alpha1.MachineDeploymentControllerFrozen), nil
		}
		return "", nil
	}
}

// TestTarget_OutOfReach_NoMachineIsFailed takes the target cluster away while its Nodes
// are silent. They recover, and the manager cannot see it for longer than the health
// timeout.
func TestTarget_OutOfReach_NoMachineIsFailed(t *testing.T) {
	t.Parallel()
	const timeout = 30 * time.Second
	s := cluster.Set(t, "target-away", fastOptions())
	g, kubeconfig := openGateway(t)
	manager := s.StartManager(t, "manager", "--control-kubeconfig="+admin(t), "--target-kubeconfig="+kubeconfig,
		"--machine-safety-apiserver-statuscheck-timeout=10s", "--machine-safety-apiserver-statuscheck-period=10s")
	d := s.Deployment("workers", "small", 4, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: &metav1.Duration{Duration: timeout}}
	deploy(t, s, d)
	uids, nodes := map[types.UID]bool{}, []string(nil)
	for _, m := range machines(t, s) {
		uids[m.UID] = true
		nodes = append(nodes, s.NodeName(m.Name))
		s.Nodes.Silence(s.NodeName(m.Name), true)
	}
	s.Wait(t, nodeGrace+patience, "all are unknown", func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "nothing is known", err
		}
		for _, m := range list.Items {
			if m.Status.CurrentStatus.Phase != v1alpha1.MachineUnknown {
				return fmt.Sprintf("machine %s is %s", m.Name, m.Status.CurrentStatus.Phase), nil
			}
		}
		return "", nil
	})

	g.blocked.Lock()
	for _, name := range nodes {
		s.Nodes.Silence(name, false)
	}
	s.Wait(t, patience, "the Nodes have recovered", nodesAre(s, nodes, corev1.ConditionTrue))
	select { // two health timeouts, for each of which a machine would be failed
	case <-time.After(2 * timeout):
	case <-t.Context().Done():
	}
	status, text, err := manager.Health(t.Context(), "/readyz")
	require.NoError(t, err)
	require.NotEqual(t, http.StatusOK, status, text)
	require.Contains(t, text, "frozen since")
	require.Contains(t, text, "the target API server has not answered since")
	_, text, err = manager.Health(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, text, "mcm_machine_controller_frozen 1")
	s.Wait(t, patience, "the deployment says so", controllerFrozen(s, "workers", true))
	g.blocked.Unlock()

	s.Wait(t, patience, "all is as before", s.Complete("workers"))
	s.Wait(t, patience, "the manager is ready", func(ctx context.Context) (string, error) {
		status, text, err := manager.Health(ctx, "/readyz")
		if status != http.StatusOK {
			return text, err
		}
		return "", nil
	})
	s.Wait(t, patience, "the deployment says it no more", controllerFrozen(s, "workers", false))
	s.Wait(t, patience, "the Events say both", func(ctx context.Context) (string, error) {
		list, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=workers"})
		if err != nil {
			return "the Events are not known", err
		}
		for _, reason := range []string{"ControllerFrozen", "ControllerUnfrozen"} {
			if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == reason }) {
				return "no Event " + reason, nil
			}
		}
		return "", nil
	})
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			require.True(t, uids[m.UID], "%s", c)
			require.NotEqual(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, "%s", c)
			require.Nil(t, m.DeletionTimestamp, "%s", c)
		}
	}
	require.Len(t, s.Cloud.Snapshot().VMs, 4)
	removeAll(t, s)
}
