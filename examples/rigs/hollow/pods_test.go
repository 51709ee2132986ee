// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestPods_Bound_StartsAfterPodStartTime(t *testing.T) {
	s := newHarness(t)
	s.nodes.PodStartTime = 3 * time.Second
	s.up("a")
	s.steps(11)
	s.podOn("a", "p", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}} })
	s.steps(3)
	require.Equal(t, corev1.PodPending, s.phase("p"))
	require.Equal(t, "ContainerCreating", s.pod("p").Status.ContainerStatuses[0].State.Waiting.Reason)
	require.False(t, isReady(s.pod("p")))
	s.steps(1)
	status := s.pod("p").Status
	require.Equal(t, corev1.PodRunning, status.Phase)
	require.True(t, isReady(s.pod("p")))
	require.NotNil(t, status.ContainerStatuses[0].State.Running)
	require.True(t, status.ContainerStatuses[0].Ready)
	require.Equal(t, "Completed", status.InitContainerStatuses[0].State.Terminated.Reason)
	require.Equal(t, status.PodIP, status.PodIPs[0].IP)
	require.Equal(t, s.node("a").Status.Addresses[0].Address, status.HostIP)
	require.Equal(t, s.clock.Now().Add(-3*time.Second), status.StartTime.UTC())
	since := s.cluster.ResourceVersion()
	s.steps(5)
	for _, w := range s.cluster.HistorySince(since) {
		require.NotEqual(t, "pods", w.Resource.Resource, "a pod that runs is left alone: %s", w)
	}
}

func TestPods_Deleted_RemovedAfterPodStopTime(t *testing.T) {
	cases := map[string]struct {
		stop  time.Duration
		grace *int64
		lasts int
	}{
		"the whole grace period, by itself":         {0, nil, 10},
		"as long as it takes":                       {4 * time.Second, nil, 4},
		"no longer than the grace period":           {time.Minute, nil, 10},
		"no longer than the grace that was granted": {4 * time.Second, ptr.To(int64(2)), 2},
		"a moment": {time.Nanosecond, nil, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			s.nodes.PodStopTime = c.stop
			s.up("a")
			s.steps(11)
			s.podOn("a", "p")
			s.steps(12)
			require.NoError(t, s.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: c.grace}))
			s.steps(c.lasts - 1)
			require.Equal(t, corev1.PodRunning, s.phase("p"))
			s.steps(1)
			require.EqualValues(t, "gone", s.phase("p"))
		})
	}
}

func TestPods_DeletedBeforeStart_RemovedAtOnce(t *testing.T) {
	s := newHarness(t)
	s.nodes.PodStartTime = time.Hour
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(12)
	s.delete("p")
	s.step()
	require.EqualValues(t, "gone", s.phase("p"))
}

func TestPods_DeletedWithFinalizer_StaysSucceeded(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/keep"} })
	s.steps(12)
	s.delete("p")
	s.steps(11)
	require.Equal(t, corev1.PodSucceeded, s.phase("p"))
	require.False(t, isReady(s.pod("p")))
	require.Zero(t, *s.pod("p").DeletionGracePeriodSeconds)
	since := s.cluster.ResourceVersion()
	s.steps(5)
	require.Equal(t, since, s.cluster.ResourceVersion(), "and is not written again")
}

func TestPods_RecreatedWithSameName_IsNotRemoved(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(12)
	s.delete("p")
	require.NoError(t, s.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	s.podOn("a", "p")
	s.steps(30)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
}

func TestPods_ReadinessGates_DecideReady(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	})
	s.steps(12)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
	require.False(t, isReady(s.pod("p")))
	pod := s.pod("p")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue})
	_, err := s.client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.steps(1)
	require.True(t, isReady(s.pod("p")))
}

func TestPods_Ended_IsNotRestarted(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(12)
	pod := s.pod("p")
	pod.Status.Phase = corev1.PodFailed
	_, err := s.client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.steps(3)
	require.Equal(t, corev1.PodFailed, s.phase("p"))
	s.delete("p")
	s.step()
	require.EqualValues(t, "gone", s.phase("p"))
}

func TestPods_Removal_HasUIDAndNoGrace(t *testing.T) {
	s := newHarness(t)
	kubelet := s.cluster.Clientset()
	s.nodes.Client = kubelet
	s.up("a")
	s.steps(11)
	s.podOn("a", "p")
	s.steps(2)
	uid := s.pod("p").UID
	s.delete("p")
	s.steps(11)
	var removals []metav1.DeleteOptions
	for _, a := range kubelet.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok {
			removals = append(removals, d.DeleteOptions)
		}
	}
	require.Equal(t, []metav1.DeleteOptions{{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &uid}}}, removals)
}
