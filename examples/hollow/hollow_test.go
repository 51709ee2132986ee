// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/hollow"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// stage is a cluster with hollow Nodes and a workload on it.
type stage struct {
	t        *testing.T
	clock    *clocktesting.FakeClock
	cluster  *draintest.Cluster
	client   kubernetes.Interface
	vms      []hollow.VM
	nodes    *hollow.Nodes
	workload *hollow.Workload
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, clock: clocktesting.NewFakeClock(start)}
	s.cluster = draintest.New(draintest.Options{Clock: s.clock})
	s.client = s.cluster.Client()
	s.nodes = &hollow.Nodes{Client: s.client, Clock: s.clock, VMs: func() []hollow.VM { return s.vms }, JoinAfter: 10 * time.Second}
	s.workload = &hollow.Workload{Client: s.client, Namespace: "default", Name: "app", Replicas: 3, GraceSeconds: 5, Budget: true}
	return s
}

func (s *stage) up(names ...string) {
	for _, name := range names {
		s.vms = append(s.vms, hollow.VM{ProviderID: "vm-" + name, NodeName: name, UpSince: s.clock.Now()})
	}
}

// steps plays so many seconds.
func (s *stage) steps(seconds int) {
	s.t.Helper()
	for range seconds {
		s.clock.Step(time.Second)
		s.cluster.Tick()
		require.NoError(s.t, s.nodes.Step(s.t.Context()))
		require.NoError(s.t, s.workload.Step(s.t.Context()))
	}
}

func (s *stage) nodeNames() []string {
	list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	names := []string{}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

// runningOn counts the running pods of each Node.
func (s *stage) runningOn() map[string]int {
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

func TestANodeJoinsOnceItsVMHasBeenUpForAWhile(t *testing.T) {
	s := newStage(t)
	s.vms = append(s.vms, hollow.VM{ProviderID: "vm-off", NodeName: "off"})
	s.up("a")
	s.steps(9)
	require.Empty(t, s.nodeNames())
	s.steps(1)
	require.Equal(t, []string{"a"}, s.nodeNames())
	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.steps(5)
	require.Empty(t, s.nodeNames(), "a kubelet registers once")
}

func TestPodsAreSpreadAndReplaced(t *testing.T) {
	s := newStage(t)
	s.up("a", "b", "c")
	s.steps(12)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, s.runningOn())

	cordoned, err := s.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	cordoned.Spec.Unschedulable = true
	_, err = s.client.CoreV1().Nodes().Update(t.Context(), cordoned, metav1.UpdateOptions{})
	require.NoError(t, err)
	pods, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
	require.NoError(t, err)
	evict := func(pod corev1.Pod) error {
		return s.client.CoreV1().Pods("default").EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
	}
	require.NoError(t, evict(pods.Items[0]))
	others, err := s.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=b"})
	require.NoError(t, err)
	require.True(t, apierrors.IsTooManyRequests(evict(others.Items[0])), "the budget lets one be down at a time")
	s.steps(8)
	require.Equal(t, 3, s.runningOn()["b"]+s.runningOn()["c"])
	require.Zero(t, s.runningOn()["a"])
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	s := newStage(t)
	s.up("a")
	s.clock.Step(10 * time.Second)
	s.cluster.Inject(draintest.Fault{Verb: "create", Resource: "nodes", Times: 1})
	require.Error(t, s.nodes.Step(t.Context()))
	require.Empty(t, s.nodeNames())
	s.steps(1)
	require.Equal(t, []string{"a"}, s.nodeNames())
}

func TestAWorkloadThatStopsLeavesNothing(t *testing.T) {
	s := newStage(t)
	s.up("a")
	s.steps(12)
	require.NoError(t, s.workload.Stop(t.Context()))
	require.NoError(t, s.workload.Stop(t.Context()), "again is fine")
	s.clock.Step(6 * time.Second)
	s.cluster.Tick()
	require.Empty(t, s.runningOn())
	budgets, err := s.client.PolicyV1().PodDisruptionBudgets("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, budgets.Items)
}

func ExampleNodes() {
	clock := clocktesting.NewFakeClock(start)
	cluster := draintest.New(draintest.Options{Clock: clock})
	nodes := &hollow.Nodes{
		Client: cluster.Client(), Clock: clock,
		VMs: func() []hollow.VM { return []hollow.VM{{ProviderID: "vm-1", NodeName: "node-1", UpSince: start}} },
	}
	if err := nodes.Step(context.Background()); err != nil {
		panic(err)
	}
	list, err := cluster.Client().CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println(list.Items[0].Name, list.Items[0].Spec.ProviderID)
	// Output: node-1 vm-1
}
