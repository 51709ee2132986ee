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

func TestNodes_VMUp_JoinsAfterJoinTime(t *testing.T) {
	s := newHarness(t)
	s.vms = append(s.vms, hollow.VM{ProviderID: "vm-off", NodeName: "off"}, hollow.VM{ProviderID: "vm-nameless", UpSince: start})
	s.up("a")
	s.steps(9)
	require.Empty(t, s.nodeNames())
	s.steps(1)
	require.Equal(t, []string{"a"}, s.nodeNames())
	require.NoError(t, s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.steps(5)
	require.Empty(t, s.nodeNames(), "a kubelet registers once")
	s.vms[2].UpSince = time.Time{}
	s.steps(1)
	s.vms[2].UpSince = s.clock.Now()
	s.steps(11)
	require.Equal(t, []string{"a"}, s.nodeNames(), "a VM that starts again has a new kubelet")
}

func TestNodes_Registered_LooksLikeAKubelet(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	node := s.node("a")
	require.Equal(t, "vm-a", node.Spec.ProviderID)
	require.Equal(t, "a", node.Labels[corev1.LabelHostname])
	require.Equal(t, "true", node.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"])
	require.Equal(t, node.Status.Capacity, node.Status.Allocatable)
	require.EqualValues(t, 110, node.Status.Allocatable.Pods().Value())
	is := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, c := range node.Status.Conditions {
		is[c.Type] = c.Status
		require.NotEmpty(t, c.Reason)
	}
	require.Equal(t, map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False", corev1.NodeDiskPressure: "False",
		corev1.NodePIDPressure: "False", corev1.NodeNetworkUnavailable: "False",
	}, is)
	lease := s.lease("a")
	require.Equal(t, "a", *lease.Spec.HolderIdentity)
	require.EqualValues(t, 40, *lease.Spec.LeaseDurationSeconds)
	require.Equal(t, node.UID, lease.OwnerReferences[0].UID, "the Lease is owned by the Node")
}

func TestNodes_Unchanged_RenewsLeaseAndRarelyReports(t *testing.T) {
	s := newHarness(t)
	s.nodes.JoinAfter = 0
	s.up("a")
	s.steps(2)
	since := s.cluster.ResourceVersion()
	s.steps(600)
	leases, reports := 0, 0
	for _, w := range s.cluster.HistorySince(since) {
		switch w.Resource.Resource {
		case "leases":
			leases++
		case "nodes":
			reports++
		}
	}
	require.Equal(t, 60, leases)
	require.Equal(t, 2, reports)
}

func TestNodes_NodeExists_IsUsed(t *testing.T) {
	s := newHarness(t)
	require.NoError(t, s.cluster.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}, {Type: "Other", Status: corev1.ConditionTrue}}},
	}))
	s.up("a")
	s.steps(11)
	require.Equal(t, corev1.ConditionTrue, s.condition("a", corev1.NodeReady).Status)
	require.Equal(t, corev1.ConditionTrue, s.condition("a", "Other").Status, "conditions of other clients stay")
	require.Len(t, s.node("a").Spec.Taints, 1, "taints are owned by other clients")
	require.False(t, s.node("a").Status.Capacity.Cpu().IsZero())
}

func TestNodes_NodesOfOthers_AreNotChanged(t *testing.T) {
	s := newHarness(t)
	s.up("b")
	require.NoError(t, s.cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	s.podOn("a", "p")
	version := s.node("a").ResourceVersion
	s.steps(20)
	require.Equal(t, version, s.node("a").ResourceVersion)
	require.Equal(t, corev1.PodPending, s.phase("p"))
}

func TestNodes_Silenced_SendsNothing(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "old")
	s.steps(15)
	s.nodes.Silence("a", true)
	s.delete("old")
	s.podOn("a", "new")
	since := s.cluster.ResourceVersion()
	s.steps(600)
	require.Empty(t, s.cluster.HistorySince(since))
	s.nodes.Silence("a", false)
	s.steps(1)
	require.EqualValues(t, "gone", s.phase("old"), "it is overdue")
	require.Equal(t, corev1.PodRunning, s.phase("new"))
	require.Equal(t, s.clock.Now(), s.lease("a").Spec.RenewTime.UTC())
	require.Equal(t, s.clock.Now(), s.condition("a", corev1.NodeReady).LastHeartbeatTime.UTC())
}

func TestNodes_SilencedBeforeJoin_DoesNotJoin(t *testing.T) {
	s := newHarness(t)
	s.nodes.Silence("a", true)
	s.up("a", "b")
	s.steps(60)
	require.Equal(t, []string{"b"}, s.nodeNames())
	require.Equal(t, []string{"a"}, s.nodes.Silent())
	s.nodes.Silence("a", false)
	s.steps(1)
	require.Equal(t, []string{"a", "b"}, s.nodeNames(), "it joins late")
	require.Empty(t, s.nodes.Silent())
}

func TestNodes_SilenceNext_NextNodesDoNotJoin(t *testing.T) {
	s := newHarness(t)
	s.up("z")
	s.steps(11)
	s.nodes.SilenceNext(2)
	s.vms[0].UpSince = time.Time{} // the VM restarts and stays down
	s.steps(1)
	s.vms[0].UpSince = s.clock.Now()
	s.steps(1)
	s.up("c")
	s.steps(1)
	s.up("e", "d", "f")
	s.steps(60)
	require.Equal(t, []string{"c", "d"}, s.nodes.Silent(), "the first by name of Nodes that join together")
	require.Equal(t, []string{"e", "f", "z"}, s.nodeNames())
	s.nodes.SilenceNext(1)
	s.nodes.SilenceNext(-1)
	s.up("g")
	s.steps(60)
	require.Contains(t, s.nodeNames(), "g", "the last order counts")
	s.clock.Step(time.Hour)
	s.step()
	require.Equal(t, corev1.ConditionTrue, s.condition("z", corev1.NodeReady).Status)
}

func TestNodes_AfterSilence_CorrectsItsConditions(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(15)
	node, pod := s.node("a"), s.pod("p")
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Status = corev1.ConditionUnknown
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	_, err := s.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = s.client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.steps(1)
	require.Equal(t, corev1.ConditionTrue, s.condition("a", corev1.NodeReady).Status)
	require.Equal(t, corev1.ConditionFalse, s.condition("a", corev1.NodeDiskPressure).Status)
	require.True(t, isReady(s.pod("p")))
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestNodes_VMDeleted_SendsNothing(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(15)
	s.vms = nil
	s.delete("p")
	since := s.cluster.ResourceVersion()
	s.steps(600)
	require.Empty(t, s.cluster.HistorySince(since))
	require.Equal(t, []string{"a"}, s.nodeNames())
}

func TestNodes_WriteFails_IsRepeated(t *testing.T) {
	for _, f := range []draintest.Fault{
		{Verb: "create", Resource: "nodes"},
		{Verb: "create", Resource: "nodes", Kind: draintest.TimeoutAfterEffect},
		{Verb: "create", Resource: "leases"},
		{Verb: "create", Resource: "leases", Kind: draintest.TimeoutAfterEffect},
		{Verb: "update", Resource: "leases", Kind: draintest.Conflict},
		{Verb: "update", Resource: "leases", Kind: draintest.TimeoutAfterEffect},
		{Verb: "patch", Resource: "nodes"},
		{Verb: "patch", Resource: "pods"},
		{Verb: "delete", Resource: "pods", Skip: 1}, // the first deletion is that of the test
		{Verb: "delete", Resource: "pods", Kind: draintest.TimeoutAfterEffect, Skip: 1},
		{Verb: "list"},
	} {
		t.Run(f.Verb+" "+f.Resource+" "+f.Kind.String(), func(t *testing.T) {
			s := newHarness(t)
			s.nodes.JoinAfter, s.nodes.StatusInterval = 0, 30*time.Second
			s.up("a")
			s.podOn("a", "p")
			f.Times = 1
			s.cluster.Inject(f)
			failed := 0
			for i := range 60 {
				s.clock.Step(time.Second)
				if s.nodes.Step(t.Context()) != nil {
					failed++
				}
				if i == 5 {
					require.Equal(t, corev1.PodRunning, s.phase("p"))
					s.delete("p")
				}
			}
			require.Positive(t, failed, "the injected fault occurred and is reported")
			require.LessOrEqual(t, failed, 2, "a repeated update after a lost response conflicts")
			require.EqualValues(t, "gone", s.phase("p"))
			require.LessOrEqual(t, s.clock.Since(s.lease("a").Spec.RenewTime.Time), 10*time.Second)
			require.LessOrEqual(t, s.clock.Since(s.condition("a", corev1.NodeReady).LastHeartbeatTime.Time), 30*time.Second)
		})
	}
}
