// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestFault_EachKind_HasTheServersError(t *testing.T) {
	cases := []struct {
		kind  draintest.FaultKind
		check func(error) bool
		wrote bool
	}{
		{draintest.InternalError, apierrors.IsInternalError, false},
		{draintest.Conflict, apierrors.IsConflict, false},
		{draintest.TooManyRequests, apierrors.IsTooManyRequests, false},
		{draintest.Timeout, apierrors.IsTimeout, false},
		{draintest.TimeoutAfterEffect, apierrors.IsTimeout, true},
		{draintest.Unavailable, apierrors.IsServiceUnavailable, false},
		{draintest.Forbidden, apierrors.IsForbidden, false},
		{draintest.FaultKind(99), apierrors.IsInternalError, false},
	}
	for _, tc := range cases {
		t.Run(tc.kind.String(), func(t *testing.T) {
			c, client, _ := newCluster(t)
			c.Inject(draintest.Fault{Kind: tc.kind, Verb: "create", Times: 1, RetryAfter: 3 * time.Second})
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			_, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
			require.True(t, tc.check(err), "%v", err)
			require.Equal(t, tc.wrote, len(c.History()) == 1)
			require.Empty(t, budgetCause(err))
			if tc.kind == draintest.TooManyRequests {
				seconds, _ := apierrors.SuggestsClientDelay(err)
				require.Equal(t, 3, seconds)
			}
			_, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
			require.Equal(t, tc.wrote, apierrors.IsAlreadyExists(err), "%v", err)
		})
	}
}

func TestFault_Selector_MatchesItsRequests(t *testing.T) {
	match := func(f draintest.Fault) (update, status, evict, get, list bool) {
		c, client, _ := newCluster(t)
		require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, runningPod("p", "n", nil)))
		c.Inject(f)
		nodes := client.CoreV1().Nodes()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		_, err := nodes.Update(t.Context(), node, metav1.UpdateOptions{})
		update = err != nil
		_, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
		status = err != nil
		evict = client.CoreV1().Pods("ns").EvictV1(t.Context(), eviction("p")) != nil
		_, err = nodes.Get(t.Context(), "n", metav1.GetOptions{})
		get = err != nil
		_, err = nodes.List(t.Context(), metav1.ListOptions{})
		list = err != nil
		return update, status, evict, get, list
	}
	cases := []struct {
		name                             string
		fault                            draintest.Fault
		update, status, evict, get, list bool
	}{
		{"everything", draintest.Fault{}, true, true, true, true, true},
		{"a verb", draintest.Fault{Verb: "update"}, true, true, false, false, false},
		{"a resource", draintest.Fault{Resource: "nodes"}, true, true, false, true, true},
		{"a subresource", draintest.Fault{Subresource: "status"}, false, true, false, false, false},
		{"a resource with subresource", draintest.Fault{Resource: "pods/eviction"}, false, false, true, false, false},
		{"a name", draintest.Fault{Name: "n"}, true, true, false, true, false},
		{"a namespace", draintest.Fault{Namespace: "ns"}, false, false, true, false, false},
		{"a function", draintest.Fault{Match: func(c draintest.Call) bool { return c.Subresource == "" && c.Verb == "update" }}, true, false, false, false, false},
		{"after two requests", draintest.Fault{Skip: 2}, false, false, true, true, true},
		{"two times", draintest.Fault{Times: 2}, true, true, false, false, false},
		{"the second time only", draintest.Fault{Skip: 1, Times: 1}, false, true, false, false, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			update, status, evict, get, list := match(tc.fault)
			require.Equal(t, []bool{tc.update, tc.status, tc.evict, tc.get, tc.list}, []bool{update, status, evict, get, list})
		})
	}
}

func TestFault_Probability_FollowsTheSeed(t *testing.T) {
	count := func(seed int64) (failed int) {
		c, client, _ := newCluster(t, func(o *draintest.Options) { o.Seed = seed })
		c.Inject(draintest.Fault{Kind: draintest.Unavailable, Probability: 0.3})
		for range 1000 {
			if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
				failed++
			}
		}
		return failed
	}
	require.InDelta(t, 300, count(1), 60)
	require.Equal(t, count(5), count(5))
}

func TestFault_Removed_HasNoEffect(t *testing.T) {
	c, client, _ := newCluster(t)
	failing := func() bool {
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err != nil
	}
	remove := c.Inject(draintest.Fault{})
	require.True(t, failing())
	remove()
	remove()
	require.False(t, failing())
}

func TestFault_Watches_DroppedAndRefused(t *testing.T) {
	c, client, _ := newCluster(t)
	w, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	p, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer p.Stop()
	c.Inject(draintest.Fault{Kind: draintest.DropWatches, Verb: "list", Resource: "nodes", Times: 1})
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "closed", next(t, w))
	require.Equal(t, 1, c.Watching("pods"))

	c.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "watch"})
	_, err = client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}
