// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestLatency_ParallelRequests_Overlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{Latency: func(call draintest.Call) time.Duration {
			if call.Verb == "list" {
				return -time.Second
			}
			return time.Second
		}})
		for i := range 10 {
			require.NoError(t, c.Add(runningPod(fmt.Sprint("p", i), "n", nil)))
		}
		client, start := c.Client(), time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, err := client.CoreV1().Pods("ns").Get(t.Context(), fmt.Sprint("p", i), metav1.GetOptions{})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, time.Second, time.Since(start), "ten requests, one second")

		_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w.Stop()
		require.Equal(t, 2*time.Second, time.Since(start), "a list without latency, and a watch")
	})
}

func TestLatency_Request_ServedOnArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{Latency: func(draintest.Call) time.Duration { return time.Second }})
		require.NoError(t, c.Add(runningPod("p", "n", nil)))
		at := time.Now().Add(time.Second)
		c.Inject(draintest.Fault{Kind: draintest.Forbidden, Match: func(call draintest.Call) bool { return call.Time.Equal(at) }})
		_, err := c.Client().CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		require.True(t, apierrors.IsForbidden(err), "faults have the time after the latency: %v", err)
	})
}

func TestList_FieldSelector_PodsOfNode(t *testing.T) {
	c := draintest.New(draintest.Options{})
	client := c.Client()
	for i := range 4 {
		require.NoError(t, c.Add(runningPod(fmt.Sprint("p", i), fmt.Sprint("n", i%2), map[string]string{"app": fmt.Sprint("a", i/2)})))
	}
	names := func(namespace string, opts metav1.ListOptions) []string {
		list, err := client.CoreV1().Pods(namespace).List(t.Context(), opts)
		require.NoError(t, err)
		require.Equal(t, c.ResourceVersion(), list.ResourceVersion)
		var names []string
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
		return names
	}
	onN0 := metav1.ListOptions{FieldSelector: "spec.nodeName=n0"}
	require.Equal(t, []string{"p0", "p2"}, names("", onN0))
	require.Equal(t, []string{"p0", "p2"}, names("ns", onN0))
	require.Empty(t, names("other", onN0))
	require.Equal(t, []string{"p2"}, names("", metav1.ListOptions{FieldSelector: "spec.nodeName=n0", LabelSelector: "app=a1"}))
	require.Equal(t, []string{"p2"}, names("", metav1.ListOptions{FieldSelector: "spec.nodeName=n0,metadata.name=p2"}))
	require.Len(t, names("", metav1.ListOptions{FieldSelector: "spec.nodeName!=n0"}), 2)

	require.NoError(t, client.CoreV1().Pods("ns").Delete(t.Context(), "p0", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	moved := runningPod("p1", "n0", nil)
	moved.UID = "another"
	require.NoError(t, c.Add(moved))
	require.Equal(t, []string{"p1", "p2"}, names("", onN0))
	require.Equal(t, []string{"p3"}, names("", metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}))
}
