// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// watched returns a harness with a Lifecycle.
func watched(t *testing.T) (*harness, *hollow.Lifecycle) {
	t.Helper()
	s := newHarness(t)
	return s, &hollow.Lifecycle{Client: s.client, Clock: s.clock, Grace: 40 * time.Second}
}

// live makes one step per second, including the Lifecycle.
func (s *harness) live(l *hollow.Lifecycle, seconds int) {
	s.t.Helper()
	for range seconds {
		s.steps(1)
		require.NoError(s.t, l.Step(s.t.Context()))
	}
}

func (s *harness) taints(node string) []string {
	s.t.Helper()
	taints := []string{}
	for _, t := range s.node(node).Spec.Taints {
		taints = append(taints, t.Key+":"+string(t.Effect))
	}
	return taints
}

func TestLifecycle_NodeSilent_UnknownAfterGraceUntilItReports(t *testing.T) {
	s, l := watched(t)
	s.up("a", "b")
	s.live(l, 15)
	s.podOn("a", "p")
	s.live(l, 300)
	require.Empty(t, s.taints("a"), "a lease is enough")
	s.nodes.Silence("a", true)
	renewed := s.lease("a").Spec.RenewTime.Time
	for s.condition("a", corev1.NodeReady).Status == corev1.ConditionTrue {
		require.Less(t, s.clock.Since(renewed), time.Minute)
		s.live(l, 1)
	}
	require.GreaterOrEqual(t, s.clock.Since(renewed), 40*time.Second)
	require.LessOrEqual(t, s.clock.Since(renewed), 42*time.Second)
	for _, of := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		c := s.condition("a", of)
		require.Equal(t, corev1.ConditionUnknown, c.Status, of)
		require.Equal(t, "NodeStatusUnknown", c.Reason)
		require.Equal(t, s.clock.Now(), c.LastTransitionTime.UTC())
	}
	require.Equal(t, corev1.ConditionFalse, s.condition("a", corev1.NodeNetworkUnavailable).Status, "other clients own it")
	require.Equal(t, []string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}, s.taints("a"))
	require.False(t, isReady(s.pod("p")))
	require.Equal(t, corev1.ConditionTrue, s.condition("b", corev1.NodeReady).Status)

	s.live(l, 100)
	since := s.cluster.ResourceVersion()
	s.live(l, 5)
	for _, w := range s.cluster.HistorySince(since) {
		require.NotEqual(t, "a", w.Name, "%s: it was said once", w)
	}
	s.nodes.Silence("a", false)
	s.live(l, 2)
	require.Equal(t, corev1.ConditionTrue, s.condition("a", corev1.NodeReady).Status)
	require.Empty(t, s.taints("a"))
	require.True(t, isReady(s.pod("p")))
}

// notReady sets the condition Ready of a Node to false.
func (s *harness) notReady(name, reason string) {
	s.t.Helper()
	node := s.node(name)
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
	}
	_, err := s.client.CoreV1().Nodes().UpdateStatus(s.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

func TestLifecycle_NodeNotReady_OnlyTainted(t *testing.T) {
	s, l := watched(t)
	s.up("a")
	s.live(l, 15)
	s.podOn("a", "p")
	s.live(l, 5)
	s.nodes.Silence("a", true)
	s.notReady("a", "RuntimeDown")
	s.live(l, 20)
	require.Equal(t, "RuntimeDown", s.condition("a", corev1.NodeReady).Reason)
	require.Equal(t, []string{"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"}, s.taints("a"))
	require.True(t, isReady(s.pod("p")))
	s.live(l, 50)
	require.Equal(t, []string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}, s.taints("a"))
}

func TestLifecycle_NodeNeverReported_UnknownAndOtherTaintsStay(t *testing.T) {
	s, l := watched(t)
	require.NoError(t, s.cluster.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
	}))
	s.live(l, 30)
	require.Zero(t, s.condition("a", corev1.NodeReady))
	s.live(l, 12)
	require.Equal(t, "NodeStatusNeverUpdated", s.condition("a", corev1.NodeReady).Reason)
	require.Contains(t, s.taints("a"), "k:NoSchedule")
}

func TestLifecycle_LongPauseBetweenSteps_NoNodeExpires(t *testing.T) {
	s, l := watched(t)
	s.up("a")
	s.live(l, 15)
	for range 7 {
		s.clock.Step(time.Hour) // neither the lifecycle nor the kubelet ran
		require.NoError(t, l.Step(t.Context()))
	}
	require.Equal(t, corev1.ConditionTrue, s.condition("a", corev1.NodeReady).Status)
	s.live(l, 1)
	require.Equal(t, corev1.ConditionTrue, s.condition("a", corev1.NodeReady).Status)
}

func TestLifecycle_WriteFails_IsRepeated(t *testing.T) {
	for _, f := range []draintest.Fault{
		{Verb: "list", Resource: "nodes"}, {Verb: "list", Resource: "leases"}, {Verb: "list", Resource: "pods"},
		{Verb: "patch", Resource: "nodes"}, {Verb: "update", Resource: "nodes", Kind: draintest.Conflict},
		{Verb: "update", Resource: "nodes", Kind: draintest.TimeoutAfterEffect}, {Verb: "patch", Resource: "pods"},
	} {
		t.Run(f.Verb+" "+f.Resource+" "+f.Kind.String(), func(t *testing.T) {
			s, l := watched(t)
			s.up("a")
			s.live(l, 15)
			s.podOn("a", "p")
			s.live(l, 1)
			s.nodes.Silence("a", true)
			s.live(l, 28)
			f.Times = 1
			s.cluster.Inject(f)
			failed := 0
			for range 20 {
				s.clock.Step(time.Second)
				if l.Step(t.Context()) != nil {
					failed++
				}
			}
			require.Positive(t, failed, "the injected fault occurred and is reported")
			require.Equal(t, corev1.ConditionUnknown, s.condition("a", corev1.NodeReady).Status)
			require.Len(t, s.taints("a"), 2)
			require.False(t, isReady(s.pod("p")))
		})
	}
}
