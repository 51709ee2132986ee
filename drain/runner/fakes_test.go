// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// TestRun_FakeClientset_PodsWithoutUIDGo drains over the fake clientset of client-go, which gives no UIDs
// and evicts nothing by itself.
func TestRun_FakeClientset_PodsWithoutUIDGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}
		client := fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: owner}, Spec: corev1.PodSpec{NodeName: "node-1"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2", OwnerReferences: owner}, Spec: corev1.PodSpec{NodeName: "node-1"}},
		)
		evicted := 0
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			create, ok := a.(clienttesting.CreateAction)
			if !ok || a.GetSubresource() != "eviction" {
				return false, nil, nil
			}
			eviction := create.GetObject().(*policyv1.Eviction)
			require.Nil(t, eviction.DeleteOptions.Preconditions)
			evicted++
			return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), eviction.Namespace, eviction.Name)
		})
		d, err := runner.Executor{Client: runner.NewClient(client)}.Run(t.Context(), "node-1", drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, drain.Drained, d.Outcome)
		require.Equal(t, 2, evicted)
	})
}

// TestRun_FakeClientset_WatchOpensLate_EvictsOnce opens the watch of pods a minute after their list. A fake clientset
// does not send it what happened in between.
func TestRun_FakeClientset_WatchOpensLate_EvictsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}
		client := fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u", OwnerReferences: owner}, Spec: corev1.PodSpec{NodeName: "node-1"}},
		)
		pods := corev1.SchemeGroupVersion.WithResource("pods")
		evicted := 0
		client.PrependReactor("create", "pods/eviction", func(clienttesting.Action) (bool, runtime.Object, error) {
			evicted++
			return true, nil, client.Tracker().Delete(pods, "shop", "web-1")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := runner.Executor{Client: runner.NewClient(lateWatch{Interface: client})}.Run(ctx, "node-1", drain.Policy{})
		require.NoError(t, err)
		require.Equal(t, 1, evicted)
	})
}

// lateWatch opens the watches of pods after a minute.
type lateWatch struct {
	kubernetes.Interface
	corev1client.CoreV1Interface
	corev1client.PodInterface
}

func (l lateWatch) CoreV1() corev1client.CoreV1Interface {
	l.CoreV1Interface = l.Interface.CoreV1()
	return l
}

func (l lateWatch) Pods(namespace string) corev1client.PodInterface {
	l.PodInterface = l.CoreV1Interface.Pods(namespace)
	return l
}

func (l lateWatch) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	time.Sleep(time.Minute)
	return l.PodInterface.Watch(ctx, o)
}

// slowEvictions answers evictions after a time.
type slowEvictions struct {
	runner.Client
	after time.Duration
}

func (s slowEvictions) Evict(ctx context.Context, e *policyv1.Eviction) error {
	select {
	case <-time.After(s.after):
		return s.Client.Evict(ctx, e)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestApply_ContextEnds_EvictionIsFinished ends the context after a second. An eviction that is cut off would use up
// its PodDisruptionBudget for two minutes.
func TestApply_ContextEnds_EvictionIsFinished(t *testing.T) {
	for after, want := range map[time.Duration]error{2 * time.Second: nil, time.Hour: context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "pods/eviction", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
			d := drain.Decision{Rows: []drain.Row{{Namespace: "shop", Name: "web-1", UID: "u", Action: drain.Evict}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			results, err := runner.Executor{Client: slowEvictions{runner.NewClient(client), after}}.Apply(ctx, d)
			require.NoError(t, err)
			require.Len(t, results, 1)
			require.ErrorIs(t, results[0].Err, want)
			require.LessOrEqual(t, time.Since(began), 6*time.Second)
		})
	}
}
