// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster on a fake clock, with a client. The scenarios of examples/e2e/conformance
// are played on such a cluster and on a real API server; the tests here are about the rest.
type world struct {
	*draintest.Cluster

	t      *testing.T
	client kubernetes.Interface
	clock  *clocktesting.FakeClock
}

func newWorld(t *testing.T, options draintest.Options, objects ...runtime.Object) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	options.Clock = clock
	cluster := draintest.New(options)
	require.NoError(t, cluster.Add(objects...))
	return &world{Cluster: cluster, t: t, client: cluster.Client(), clock: clock}
}

// after lets time pass, and returns when the controllers of the cluster have something to do next.
func (w *world) after(d time.Duration) time.Time {
	w.clock.Step(d)
	return w.Tick()
}

func (w *world) pods() corev1client.PodInterface { return w.client.CoreV1().Pods("ns") }

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.pods().Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return pod
}

// exists reports whether a pod exists.
func (w *world) exists(name string) bool {
	w.t.Helper()
	_, err := w.pods().Get(w.t.Context(), name, metav1.GetOptions{})
	require.True(w.t, err == nil || apierrors.IsNotFound(err), "%v", err)
	return err == nil
}

// remove deletes a pod, with its own grace period or another one in seconds.
func (w *world) remove(name string, grace ...int64) {
	w.t.Helper()
	options := metav1.DeleteOptions{}
	for _, seconds := range grace {
		options.GracePeriodSeconds = &seconds
	}
	require.NoError(w.t, w.pods().Delete(w.t.Context(), name, options))
}

// evict evicts a pod with these preconditions, and returns the error.
func (w *world) evict(name string, preconditions *metav1.Preconditions) error {
	return w.pods().EvictV1(w.t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: name, Namespace: "ns"},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions},
	})
}

// listNodes returns the error of a list.
func (w *world) listNodes() error {
	return second(w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{}))
}

// must returns the value of a call without error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
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

// ownedBy returns an object with a controller.
func ownedBy[T metav1.Object](object T, owner metav1.Object, kind string) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true),
	}})
	return object
}

// minAvailable returns the budget b of the pods of web.
func minAvailable(value intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &value, Selector: &metav1.LabelSelector{MatchLabels: web}},
	}
}

var web = map[string]string{"app": "web"}

func TestClientset_ReturnedObject_IsACopy(t *testing.T) {
	w := newWorld(t, draintest.Options{})
	sent := runningPod("p", "n1", map[string]string{"a": "1"})
	created := must(w.pods().Create(t.Context(), sent, metav1.CreateOptions{}))
	listed := must(w.pods().List(t.Context(), metav1.ListOptions{}))
	written := func() *corev1.Pod { return w.History()[0].After.(*corev1.Pod) }
	for _, pod := range []*corev1.Pod{sent, created, w.pod("p"), &listed.Items[0], written()} {
		pod.Labels["a"] = "changed"
	}
	require.Equal(t, []string{"1", "1"}, []string{w.pod("p").Labels["a"], written().Labels["a"]})
}

func TestCluster_SameSeed_SameHistory(t *testing.T) {
	run := func() []string {
		w := newWorld(t, draintest.Options{Seed: 7})
		var lines []string
		for i := range 5 {
			must(w.pods().Create(t.Context(), runningPod(fmt.Sprint("web-", i), "n1", web), metav1.CreateOptions{}))
		}
		for _, write := range w.History() {
			lines = append(lines, write.String()+string(write.UID))
		}
		return lines
	}
	require.Equal(t, run(), run())
}

func TestAdd_Objects_AreUnchanged(t *testing.T) {
	absent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "never existed", UID: "a"}}
	nodes := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}}}
	w := newWorld(t, draintest.Options{}, ownedBy(runningPod("p", "n1", web), absent, "ReplicaSet"), nodes)
	w.Tick()
	require.Equal(t, corev1.PodRunning, w.pod("p").Status.Phase)
	require.EqualValues(t, "u", must(w.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})).UID)
	require.Len(t, w.HistorySince(w.History()[0].ResourceVersion), 1)
	w.ForgetHistory()
	require.Empty(t, w.History())
	unknown := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for _, object := range []runtime.Object{nil, &corev1.Node{}, unknown} {
		require.Error(t, w.Add(object))
	}
}
