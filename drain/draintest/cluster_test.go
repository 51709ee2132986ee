// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newCluster returns a cluster on a fake clock, with a client. The scenarios of examples/e2e/conformance
// are played on such a cluster and on a real API server; the tests here are about the rest.
func newCluster(t *testing.T, change ...func(*draintest.Options)) (*draintest.Cluster, kubernetes.Interface, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	opts := draintest.Options{Clock: clock}
	for _, f := range change {
		f(&opts)
	}
	c := draintest.New(opts)
	return c, c.Client(), clock
}

// runningPod returns a running pod of a node.
func runningPod(name, node string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(30))},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func ownedBy(pod *corev1.Pod, owner metav1.Object, kind string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true),
	}}
	return pod
}

func minAvailable(name string, value intstr.IntOrString, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &value, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
}

// exists reports whether a pod exists.
func exists(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	_, err := client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	return err == nil
}

func eviction(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

var web = map[string]string{"app": "web"}

func TestClientset_Several_ShareOneStore(t *testing.T) {
	c, client, _ := newCluster(t)
	other := c.Client()
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = other.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestClientset_ReturnedObject_IsACopy(t *testing.T) {
	c, client, _ := newCluster(t)
	pods := client.CoreV1().Pods("ns")
	sent := runningPod("p", "n1", map[string]string{"a": "1"})
	got, err := pods.Create(t.Context(), sent, metav1.CreateOptions{})
	require.NoError(t, err)
	sent.Labels["a"] = "sent"
	got.Labels["a"] = "returned"
	read, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	read.Labels["a"] = "read"
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	list.Items[0].Labels["a"] = "listed"
	after, _ := c.History()[0].After.(*corev1.Pod)
	after.Labels["a"] = "history"
	read, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "1", read.Labels["a"])
	last, _ := c.History()[0].After.(*corev1.Pod)
	require.Equal(t, "1", last.Labels["a"])
}

func TestCluster_SameSeed_SameHistory(t *testing.T) {
	run := func() []string {
		c, client, _ := newCluster(t, func(o *draintest.Options) { o.Seed = 7 })
		for i := range 5 {
			pod := runningPod(fmt.Sprint("web-", i), "n1", web)
			_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		var lines []string
		for _, w := range c.History() {
			lines = append(lines, w.String()+string(w.UID))
		}
		return lines
	}
	require.Equal(t, run(), run())
}

func TestAdd_Objects_AreUnchanged(t *testing.T) {
	c, client, _ := newCluster(t)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "never existed", UID: "a"}}
	nodes := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}}}
	require.NoError(t, c.Add(ownedBy(runningPod("p", "n1", web), set, "ReplicaSet"), nodes))
	c.Tick()
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, "u", node.UID)
	require.Len(t, c.HistorySince(c.History()[0].ResourceVersion), 1)
	c.ForgetHistory()
	require.Empty(t, c.History())
	require.Error(t, c.Add(nil))
	require.Error(t, c.Add(&corev1.Node{}))
	require.Error(t, c.Add(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "x"}}))
}
