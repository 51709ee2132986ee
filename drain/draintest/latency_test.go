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
