// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWakeWithFreeze_ManyObjects_EachAtItsOwnTime asserts that the passes after the begin or the end of
// a freeze are spread.
func TestWakeWithFreeze_ManyObjects_EachAtItsOwnTime(t *testing.T) {
	t.Parallel()
	const objects = 200
	start := time.Unix(1_700_000_000, 0)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Node{}, 0, cache.Indexers{})
	for i := range objects {
		require.NoError(t, informer.GetIndexer().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("m-", i)}}))
	}
	queue := newHandQueue(clocktesting.NewFakePassiveClock(start))
	l := &loop{cfg: &Config{Random: rand.New(rand.NewPCG(1, 2)).Float64}, queue: queue}
	l.wakeWithFreeze(informer, wakeSpread)
	require.Empty(t, queue.later)
	for _, wake := range l.cfg.wakes {
		wake()
	}
	perSecond := map[int]int{}
	for _, at := range queue.later {
		perSecond[int(at.Sub(start)/time.Second)]++
	}
	require.Len(t, queue.later, objects)
	require.Len(t, perSecond, int(wakeSpread/time.Second))
	for second, n := range perSecond {
		require.Less(t, n, 2*objects/len(perSecond), "second %d", second)
	}
}
