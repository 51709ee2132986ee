// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
)

// newCluster returns a cluster with these objects, and its clock.
func newCluster(t testing.TB, objects ...runtime.Object) (*draintest.Cluster, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(now)
	cluster := draintest.New(draintest.Options{Clock: clock, Seed: 1})
	require.NoError(t, cluster.Add(objects...))
	return cluster, clock
}

func openNode() *corev1.Node {
	node := newNode()
	node.Spec.Unschedulable = false
	node.Spec.Taints = []corev1.Taint{{Key: "of-somebody", Effect: corev1.TaintEffectNoSchedule}}
	return node
}

// observation reads a cluster, past all faults of its clients.
func observation(t testing.TB, cluster *draintest.Cluster, answers drain.Answers) drain.Observation {
	t.Helper()
	in := drain.Observation{Looked: true, PodsComplete: true, Answers: answers}
	client := cluster.Client()
	node, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	if err == nil {
		in.Node = node
	} else {
		require.True(t, apierrors.IsNotFound(err), err)
	}
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	require.NoError(t, err)
	for i := range pods.Items {
		in.Pods = append(in.Pods, &pods.Items[i])
	}
	return in
}

func TestCarryCordonsThenEvicts(t *testing.T) {
	cluster, _ := newCluster(t, openNode(), newPod("a"), newPod("b"), newPod("agent", ownedBy("DaemonSet")))
	plan := drain.Decide(observation(t, cluster, nil), drain.Policy{}, now)
	client := cluster.Clientset()
	results, err := drain.Carry(t.Context(), client, plan)
	require.NoError(t, err)
	require.Len(t, results, 2)
	var asked []string
	for _, a := range client.Actions() {
		asked = append(asked, a.GetVerb()+" "+a.GetResource().Resource+"/"+a.GetSubresource())
	}
	require.Equal(t, []string{"patch nodes/", "create pods/eviction", "create pods/eviction"}, asked, "one request for each")

	in := observation(t, cluster, nil)
	require.True(t, in.Node.Spec.Unschedulable)
	require.Equal(t, openNode().Spec.Taints, in.Node.Spec.Taints, "the rest of the Node is untouched")
	for _, r := range drain.Decide(in, drain.Policy{}, now).Holds() {
		require.Equal(t, now.Add(30*time.Second), r.Until, "a pod keeps its own grace")
	}
}

func TestASuccessorOfTheSameNameIsSpared(t *testing.T) {
	for _, p := range []drain.Policy{anything, forced(), unreachable()} {
		cluster, _ := newCluster(t, newNode(), newPod("a"))
		in := observation(t, cluster, nil)
		plan := drain.Decide(in, p, now)
		pods := cluster.Client().CoreV1().Pods("shop")
		require.NoError(t, pods.Delete(t.Context(), "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		require.NoError(t, cluster.Add(newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })))

		results, err := drain.Carry(t.Context(), cluster.Client(), plan)
		require.NoError(t, err)
		require.True(t, apierrors.IsConflict(results[0].Err), results[0].Err)
		successor, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, successor.DeletionTimestamp)

		in.Answers = in.Answers.After(plan, results, p, now)
		row := drain.Decide(in, p, now).Rows[0]
		require.Equal(t, drain.ReasonConflict, row.Reason, "a cache that lags does not ask again at once")
	}
}

func TestASuccessorOfTheNodeIsNotCordoned(t *testing.T) {
	cluster, _ := newCluster(t, openNode(), newPod("a"))
	plan := drain.Decide(observation(t, cluster, nil), drain.Policy{}, now)
	successor := openNode()
	successor.UID = "uid-successor"
	require.NoError(t, cluster.Add(successor))
	results, err := drain.Carry(t.Context(), cluster.Client(), plan)
	require.ErrorAs(t, err, new(*drain.CordonError))
	require.Empty(t, results)
	require.False(t, observation(t, cluster, nil).Node.Spec.Unschedulable)
}

func TestANodeThatIsGoneNeedsNoCordon(t *testing.T) {
	cluster, _ := newCluster(t, newPod("a"))
	in := observed(newPod("a"))
	in.Node = openNode()
	results, err := drain.Carry(t.Context(), cluster.Client(), drain.Decide(in, drain.Policy{}, now))
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NoError(t, results[0].Err)
}

func TestWithoutCordon(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy drain.Policy
		want   int
	}{
		{"no pod is evicted, since it might come back", anything, 0},
		{"force goes on", forced(), 2},
		{"an unreachable Node does not matter", unreachable(), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster, _ := newCluster(t, openNode(), newPod("a"), newPod("b"))
			cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
			results, err := drain.Carry(t.Context(), cluster.Client(), drain.Decide(observation(t, cluster, nil), tt.policy, now))
			require.True(t, apierrors.IsForbidden(err), err)
			cordon, ok := errors.AsType[*drain.CordonError](err)
			require.True(t, ok)
			require.Equal(t, "node-1", cordon.Node)
			require.ErrorContains(t, err, "cordon node node-1: ")
			require.Len(t, results, tt.want)
		})
	}
}

func TestCarryEndsWithItsContext(t *testing.T) {
	t.Run("before anything", func(t *testing.T) {
		cluster, _ := newCluster(t, openNode(), newPod("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client := cluster.Clientset()
		results, err := drain.Carry(ctx, client, drain.Decide(observation(t, cluster, nil), drain.Policy{}, now))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, results)
		require.Empty(t, client.Actions())
	})
	t.Run("in the middle, and says what was done", func(t *testing.T) {
		cluster, _ := newCluster(t, newNode(), newPod("a"), newPod("b"), newPod("c"))
		ctx, cancel := context.WithCancel(t.Context())
		client, asked := cluster.Clientset(), 0
		client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if asked++; asked == 2 {
				cancel()
			}
			return false, nil, nil
		})
		results, err := drain.Carry(ctx, client, drain.Decide(observation(t, cluster, nil), drain.Policy{}, now))
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, results, 2)
		require.Equal(t, "b", results[1].Row.Name)
		require.Len(t, client.Actions(), 2)
	})
}

func TestCarryWithoutClient(t *testing.T) {
	results, err := drain.Carry(t.Context(), nil, drain.Plan{Cordon: "node-1"})
	require.Error(t, err)
	require.Empty(t, results)
}

func TestCarryDoesNothingForAnEmptyPlan(t *testing.T) {
	cluster, _ := newCluster(t)
	client := cluster.Clientset()
	for _, plan := range []drain.Plan{{}, drain.Decide(drain.Observation{}, forced(), now)} {
		results, err := drain.Carry(t.Context(), client, plan)
		require.NoError(t, err)
		require.Empty(t, results)
	}
	require.Empty(t, client.Actions())
}

// One pod under two budgets and one under a budget that is met do not keep the
// third.
func TestOneRefusalDoesNotStopTheOthers(t *testing.T) {
	budget := func(name, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			},
		}
	}
	labelled := func(app string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = app } }
	cluster, _ := newCluster(t, newNode(), budget("b1", "two"), budget("b2", "two"), budget("b3", "one"),
		newPod("a", labelled("two")), newPod("b", labelled("one")), newPod("c", labelled("none")))
	in := observation(t, cluster, nil)
	plan := drain.Decide(in, drain.Policy{}, now)
	results, err := drain.Carry(t.Context(), cluster.Client(), plan)
	require.NoError(t, err)
	in = observation(t, cluster, in.Answers.After(plan, results, drain.Policy{}, now))
	var got []drain.Reason
	for _, r := range drain.Decide(in, drain.Policy{}, now).Rows {
		got = append(got, r.Reason)
	}
	require.Equal(t, []drain.Reason{drain.ReasonRefused, drain.ReasonBudget, drain.ReasonTerminating}, got)
}
