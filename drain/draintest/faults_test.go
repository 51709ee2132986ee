// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestFault_EachKind_HasTheServersError(t *testing.T) {
	for kind, is := range map[draintest.FaultKind]func(error) bool{
		draintest.InternalError:      apierrors.IsInternalError,
		draintest.Conflict:           apierrors.IsConflict,
		draintest.TooManyRequests:    apierrors.IsTooManyRequests,
		draintest.Timeout:            apierrors.IsTimeout,
		draintest.TimeoutAfterEffect: apierrors.IsTimeout,
		draintest.Unavailable:        apierrors.IsServiceUnavailable,
		draintest.Forbidden:          apierrors.IsForbidden,
		draintest.FaultKind(99):      apierrors.IsInternalError,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			w := newWorld(t, draintest.Options{})
			w.Inject(draintest.Fault{Kind: kind, Verb: "create", Times: 1, RetryAfter: 3 * time.Second})
			create := func() error {
				return second(w.client.CoreV1().Nodes().Create(t.Context(), newNode("n"), metav1.CreateOptions{}))
			}
			err := create()
			require.True(t, is(err), "%v", err)
			require.Empty(t, budgetCause(err))
			if kind == draintest.TooManyRequests {
				seconds, _ := apierrors.SuggestsClientDelay(err)
				require.Equal(t, 3, seconds)
			}
			require.Equal(t, kind == draintest.TimeoutAfterEffect, apierrors.IsAlreadyExists(create()))
			require.Len(t, w.History(), 1)
		})
	}
}

func TestFault_Selector_MatchesItsRequests(t *testing.T) {
	updates := func(c draintest.Call) bool { return c.Subresource == "" && c.Verb == "update" }
	for name, tt := range map[string]struct {
		fault draintest.Fault
		want  string
	}{
		"everything":                  {draintest.Fault{}, "update status evict get list"},
		"a verb":                      {draintest.Fault{Verb: "update"}, "update status"},
		"a resource":                  {draintest.Fault{Resource: "nodes"}, "update status get list"},
		"a subresource":               {draintest.Fault{Subresource: "status"}, "status"},
		"a resource with subresource": {draintest.Fault{Resource: "pods/eviction"}, "evict"},
		"a name":                      {draintest.Fault{Name: "n"}, "update status get"},
		"a namespace":                 {draintest.Fault{Namespace: "ns"}, "evict"},
		"a function":                  {draintest.Fault{Match: updates}, "update"},
		"after two requests":          {draintest.Fault{Skip: 2}, "evict get list"},
		"two times":                   {draintest.Fault{Times: 2}, "update status"},
		"the second time only":        {draintest.Fault{Skip: 1, Times: 1}, "status"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, draintest.Options{}, newNode("n"), runningPod("p", "n", nil))
			w.Inject(tt.fault)
			nodes := w.client.CoreV1().Nodes()
			var failed []string
			check := func(request string, err error) {
				if err != nil {
					failed = append(failed, request)
				}
			}
			check("update", second(nodes.Update(t.Context(), newNode("n"), metav1.UpdateOptions{})))
			check("status", second(nodes.UpdateStatus(t.Context(), newNode("n"), metav1.UpdateOptions{})))
			check("evict", w.evict("p", nil))
			check("get", second(nodes.Get(t.Context(), "n", metav1.GetOptions{})))
			check("list", w.listNodes())
			require.Equal(t, tt.want, strings.Join(failed, " "))
		})
	}
}

func TestFault_Probability_FollowsTheSeed(t *testing.T) {
	count := func(seed int64) (failed int) {
		w := newWorld(t, draintest.Options{Seed: seed})
		w.Inject(draintest.Fault{Kind: draintest.Unavailable, Probability: 0.3})
		for range 1000 {
			if w.listNodes() != nil {
				failed++
			}
		}
		return failed
	}
	require.InDelta(t, 300, count(1), 60)
	require.Equal(t, count(5), count(5))
}

func TestFault_Removed_HasNoEffect(t *testing.T) {
	w := newWorld(t, draintest.Options{})
	remove := w.Inject(draintest.Fault{})
	require.Error(t, w.listNodes())
	remove()
	remove()
	require.NoError(t, w.listNodes())
}

func TestFault_Watches_DroppedAndRefused(t *testing.T) {
	w := newWorld(t, draintest.Options{})
	nodes := must(w.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{}))
	pods := must(w.client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{}))
	defer pods.Stop()
	w.Inject(draintest.Fault{Kind: draintest.DropWatches, Verb: "list", Resource: "nodes", Times: 1},
		draintest.Fault{Kind: draintest.Unavailable, Verb: "watch"})
	require.NoError(t, w.listNodes())
	require.Equal(t, "closed", next(t, nodes))
	require.Equal(t, 1, w.Watching("pods"))
	err := second(w.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{}))
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}

func TestLatency_ParallelRequests_Overlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{Latency: func(call draintest.Call) time.Duration {
			if call.Verb == "list" {
				return -time.Second
			}
			return time.Second
		}})
		pods, start := c.Client().CoreV1().Pods("ns"), time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			require.NoError(t, c.Add(runningPod(fmt.Sprint("p", i), "n", nil)))
			wg.Go(func() { must(pods.Get(t.Context(), fmt.Sprint("p", i), metav1.GetOptions{})) })
		}
		wg.Wait()
		require.Equal(t, time.Second, time.Since(start), "ten requests, one second")
		must(pods.List(t.Context(), metav1.ListOptions{}))
		must(pods.Watch(t.Context(), metav1.ListOptions{})).Stop()
		require.Equal(t, 2*time.Second, time.Since(start), "a list without latency, and a watch")

		at := time.Now().Add(time.Second)
		c.Inject(draintest.Fault{Kind: draintest.Forbidden, Match: func(call draintest.Call) bool { return call.Time.Equal(at) }})
		err := second(pods.Get(t.Context(), "p0", metav1.GetOptions{}))
		require.True(t, apierrors.IsForbidden(err), "faults have the time after the latency: %v", err)
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("application/merge-patch+json", []byte(`{"spec":{"size":7},"metadata":{"finalizers":["a/b"]}}`), "")
	f.Add("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata"}]`), "")
	f.Add("application/merge-patch+json", []byte(`{"metadata":null}`), "status")
	f.Add("application/json-patch+json", []byte(`[{"op":"add","path":"","value":3}]`), "")
	f.Fuzz(func(t *testing.T, kind string, patch []byte, subresource string) {
		node := newNode("n")
		node.UID = "u"
		nodes := newWorld(t, draintest.Options{}, node).client.CoreV1().Nodes()
		err := second(nodes.Patch(t.Context(), "n", types.PatchType(kind), patch, metav1.PatchOptions{}, subresource))
		known := err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
		require.True(t, known, "not an API error: %v", err)
		node, err = nodes.Get(t.Context(), "n", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"n", "u"}, []string{node.Name, string(node.UID)})
	})
}
