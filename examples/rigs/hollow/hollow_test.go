// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// harness is a cluster with hollow Nodes and a workload.
type harness struct {
	t         *testing.T
	clock     *clocktesting.FakeClock
	cluster   *draintest.Cluster
	client    kubernetes.Interface
	vms       []hollow.VM
	nodes     *hollow.Nodes
	workload  *hollow.Workload
	replicas  *hollow.Replicas
	scheduler *hollow.Scheduler
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := &harness{t: t, clock: clocktesting.NewFakeClock(start)}
	s.cluster = draintest.New(draintest.Options{Clock: s.clock})
	s.client = s.cluster.Client()
	s.nodes = &hollow.Nodes{Client: s.client, Clock: s.clock, VMs: func() []hollow.VM { return s.vms }, JoinAfter: 10 * time.Second}
	s.workload = &hollow.Workload{Client: s.client, Namespace: "default", Name: "app", GraceSeconds: 5}
	s.replicas = &hollow.Replicas{Client: s.client}
	s.scheduler = &hollow.Scheduler{Client: s.client}
	return s
}

// up starts VMs. The kubelets of the cluster in memory are off for their Nodes.
func (s *harness) up(names ...string) {
	for _, name := range names {
		s.vms = append(s.vms, hollow.VM{ProviderID: "vm-" + name, NodeName: name, UpSince: s.clock.Now()})
		s.cluster.SetNodeSilent(name, true)
	}
}

// steps makes one step per second.
func (s *harness) steps(seconds int) {
	s.t.Helper()
	for range seconds {
		s.clock.Step(time.Second)
		s.step()
	}
}

// step makes one step of all parts.
func (s *harness) step() {
	s.t.Helper()
	ctx := s.t.Context()
	require.NoError(s.t, s.workload.Step(ctx))
	require.NoError(s.t, s.replicas.Step(ctx))
	require.NoError(s.t, s.scheduler.Step(ctx))
	require.NoError(s.t, s.nodes.Step(ctx))
}

func (s *harness) node(name string) *corev1.Node {
	s.t.Helper()
	node, err := s.client.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return node
}

func (s *harness) condition(name string, of corev1.NodeConditionType) corev1.NodeCondition {
	s.t.Helper()
	for _, c := range s.node(name).Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func (s *harness) lease(name string) *coordinationv1.Lease {
	s.t.Helper()
	lease, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return lease
}

func (s *harness) nodeNames() []string {
	s.t.Helper()
	list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	names := []string{}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

// podOn creates a pod that is bound to a Node.
func (s *harness) podOn(node, name string, edit ...func(*corev1.Pod)) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(10)), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	for _, e := range edit {
		e(pod)
	}
	_, err := s.client.CoreV1().Pods("default").Create(s.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// pod returns a pod, or nil if there is none.
func (s *harness) pod(name string) *corev1.Pod {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(s.t, err)
	if len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

func (s *harness) phase(name string) corev1.PodPhase {
	s.t.Helper()
	pod := s.pod(name)
	if pod == nil {
		return "gone"
	}
	return pod.Status.Phase
}

func (s *harness) delete(name string) {
	s.t.Helper()
	require.NoError(s.t, s.client.CoreV1().Pods("default").Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// runningOn returns the number of running pods by Node.
func (s *harness) runningOn() map[string]int {
	s.t.Helper()
	list, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	on := map[string]int{}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			on[p.Spec.NodeName]++
		}
	}
	return on
}
