// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
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
	m := must(meta.Accessor(ev.Object))
	return fmt.Sprintf("%s %s@%s", ev.Type, m.GetName(), m.GetResourceVersion())
}

func TestWatch_OldResourceVersion_Gone(t *testing.T) {
	w := newWorld(t, draintest.Options{}, newNode("old"), newNode("older"))
	w.Compact()
	nodes := w.client.CoreV1().Nodes()
	old := must(nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
	require.Equal(t, []string{"ERROR 410", "closed"}, []string{next(t, old), next(t, old)})
	require.Zero(t, w.Watching(""))
	latest := must(nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: w.ResourceVersion()}))
	defer latest.Stop()
	require.NoError(t, w.Add(newNode("new")))
	require.Equal(t, "ADDED new@"+w.ResourceVersion(), next(t, latest))
	err := second(w.pods().Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"}))
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

func TestWatch_SlowReader_OthersContinue(t *testing.T) {
	w := newWorld(t, draintest.Options{})
	nodes := must(w.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{}))
	defer nodes.Stop()
	for i := range 1000 {
		require.NoError(t, w.Add(newNode(fmt.Sprintf("n%04d", i))))
	}
	for i := range 1000 {
		require.Contains(t, next(t, nodes), fmt.Sprintf("n%04d", i))
	}
}

func TestWatch_Held_ShowsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{})
		open := func() watch.Interface {
			return must(c.Client().CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{}))
		}
		early := open()
		defer early.Stop()
		release := c.HoldWatches()
		require.NoError(t, c.Add(newNode("n")))
		late := open()
		defer late.Stop()
		synctest.Wait()
		select {
		case ev := <-early.ResultChan():
			t.Fatalf("held, but got %v", ev)
		case ev := <-late.ResultChan():
			t.Fatalf("held, but got %v", ev)
		default:
		}
		release()
		release()
		require.Equal(t, []string{"ADDED n@2", "ADDED n@2"}, []string{next(t, early), next(t, late)})
	})
}

func TestInformer_DropsAndCompaction_FollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{})
		add := func(name string) { require.NoError(t, c.Add(runningPod(name, "n1", web))) }
		add("before")
		stop := make(chan struct{})
		factory := informers.NewSharedInformerFactory(c.Client(), 0)
		lister := factory.Core().V1().Pods().Lister()
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
		count := func() int {
			synctest.Wait()
			return len(must(lister.List(labels.Everything())))
		}
		require.Equal(t, 1, count())
		release := c.HoldWatches()
		add("second")
		require.Equal(t, 1, count(), "the informer lags")
		release()
		require.Equal(t, 2, count())
		require.Equal(t, 1, c.DropWatches("pods"))
		add("third")
		c.Compact()
		time.Sleep(time.Minute)
		require.Equal(t, 3, count(), "after it listed again")
		close(stop)
		factory.Shutdown()
	})
}

func TestCluster_ManyClients_AreServedAtOnce(t *testing.T) {
	shared := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}
	shared.Spec.Replicas = ptr.To(int32(1))
	w := newWorld(t, draintest.Options{}, shared)
	const writers, rounds = 4, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			deployments := w.Client().AppsV1().Deployments("ns")
			for done := 0; done < rounds; {
				d := must(deployments.Get(t.Context(), "shared", metav1.GetOptions{}))
				*d.Spec.Replicas++
				err := second(deployments.Update(t.Context(), d, metav1.UpdateOptions{}))
				if err == nil {
					done++
				} else if !apierrors.IsConflict(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		changes := must(w.Client().AppsV1().Deployments("ns").Watch(t.Context(), metav1.ListOptions{}))
		defer changes.Stop()
		for last := int32(0); last < 1+writers*rounds; {
			replicas := *(<-changes.ResultChan()).Object.(*appsv1.Deployment).Spec.Replicas
			if replicas < last {
				t.Errorf("events out of order: %d after %d", replicas, last)
			}
			last = replicas
		}
	})
	wg.Wait()
	last := must(w.client.AppsV1().Deployments("ns").Get(t.Context(), "shared", metav1.GetOptions{}))
	require.EqualValues(t, 1+writers*rounds, *last.Spec.Replicas, "no update is lost")
}
