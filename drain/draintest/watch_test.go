// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// next reads one event as "TYPE name@version".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	ev, open := <-w.ResultChan()
	if !open {
		return "closed"
	}
	if ev.Type == watch.Error {
		return fmt.Sprintf("ERROR %d", ev.Object.(*metav1.Status).Code)
	}
	m, err := meta.Accessor(ev.Object)
	require.NoError(t, err)
	return fmt.Sprintf("%s %s@%s", ev.Type, m.GetName(), m.GetResourceVersion())
}

func TestWatch_OldResourceVersion_Gone(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "older"}}))
	c.Compact()
	w, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	require.Equal(t, "ERROR 410", next(t, w))
	require.Equal(t, "closed", next(t, w))
	require.Zero(t, c.Watching(""))

	latest := c.ResourceVersion()
	w, err = client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest})
	require.NoError(t, err)
	require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))
	require.Equal(t, "ADDED new@"+c.ResourceVersion(), next(t, w))
	w.Stop()

	_, err = client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

func TestWatch_SlowReader_OthersContinue(t *testing.T) {
	c, client, _ := newCluster(t)
	w, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	for i := range 1000 {
		require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)}}))
	}
	for i := range 1000 {
		require.Contains(t, next(t, w), fmt.Sprintf("n%04d", i))
	}
}

func TestWatch_Held_ShowsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{})
		w, err := c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		release := c.HoldWatches()
		require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
		late, err := c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer late.Stop()
		synctest.Wait()
		select {
		case ev := <-w.ResultChan():
			t.Fatalf("held, but got %v", ev)
		case ev := <-late.ResultChan():
			t.Fatalf("held, but got %v", ev)
		default:
		}
		release()
		release()
		require.Equal(t, "ADDED n@2", next(t, w))
		require.Equal(t, "ADDED n@2", next(t, late))
	})
}

func TestInformer_DropsAndCompaction_FollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{})
		client := c.Client()
		require.NoError(t, c.Add(runningPod("before", "n1", web)))
		stop := make(chan struct{})
		factory := informers.NewSharedInformerFactory(client, 0)
		lister := factory.Core().V1().Pods().Lister()
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
		count := func() int {
			synctest.Wait()
			pods, err := lister.List(labels.Everything())
			require.NoError(t, err)
			return len(pods)
		}
		require.Equal(t, 1, count())
		require.NoError(t, c.Add(runningPod("second", "n1", web)))
		require.Equal(t, 2, count())

		release := c.HoldWatches()
		require.NoError(t, c.Add(runningPod("third", "n1", web)))
		require.Equal(t, 2, count(), "the informer lags")
		release()
		require.Equal(t, 3, count())

		require.Equal(t, 1, c.DropWatches("pods"))
		require.NoError(t, c.Add(runningPod("fourth", "n1", web)))
		c.Compact()
		informer := factory.Core().V1().Pods().Informer()
		require.True(t, cache.WaitForCacheSync(stop, func() bool { return len(informer.GetStore().ListKeys()) == 4 }), "after it listed again")
		close(stop)
		factory.Shutdown()
	})
}

func TestCluster_ManyClients_AreServedAtOnce(t *testing.T) {
	c, _, _ := newCluster(t)
	shared := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1))}}
	require.NoError(t, c.Add(shared))
	const writers, rounds = 4, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			deployments := c.Client().AppsV1().Deployments("ns")
			for done := 0; done < rounds; {
				d, err := deployments.Get(t.Context(), "shared", metav1.GetOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				*d.Spec.Replicas++
				_, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
				switch {
				case err == nil:
					done++
				case !apierrors.IsConflict(err):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		w, err := c.Client().AppsV1().Deployments("ns").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer w.Stop()
		for last := int32(0); last < 1+writers*rounds; {
			replicas := *(<-w.ResultChan()).Object.(*appsv1.Deployment).Spec.Replicas
			if replicas < last {
				t.Errorf("events out of order: %d after %d", replicas, last)
			}
			last = replicas
		}
	})
	wg.Wait()
	got, err := c.Client().AppsV1().Deployments("ns").Get(t.Context(), "shared", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1+writers*rounds, *got.Spec.Replicas, "no update is lost")
}
