// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A disruption that was announced to a pod is taken back after two minutes in which the pod was not deleted.
func TestAnAnnouncedDisruptionIsTakenBack(t *testing.T) {
	c, client, clock := newCluster(t)
	announced := func(name, reason string, change func(*corev1.Pod)) *corev1.Pod {
		p := runningPod(name, "n1", nil)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(start),
		})
		change(p)
		return p
	}
	same := func(*corev1.Pod) {}
	require.NoError(t, c.Add(
		announced("stays", "EvictionByEvictionAPI", same),
		announced("by-kubelet", corev1.PodReasonTerminationByKubelet, same),
		announced("ended", "EvictionByEvictionAPI", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		announced("going", "EvictionByEvictionAPI", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: start.Add(time.Hour)}, new(int64(3600))
		}),
	))
	status := func(name string) corev1.ConditionStatus {
		p, err := client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return p.Status.Conditions[1].Status
	}
	due := start.Add(2 * time.Minute)
	require.True(t, due.Equal(c.Tick()))
	require.Equal(t, corev1.ConditionTrue, status("stays"))
	clock.SetTime(due)
	require.True(t, start.Add(time.Hour).Equal(c.Tick()), "nothing more to take back")
	require.Equal(t, corev1.ConditionFalse, status("stays"))
	for _, name := range []string{"by-kubelet", "ended", "going"} {
		require.Equal(t, corev1.ConditionTrue, status(name), name)
	}
	p, err := client.CoreV1().Pods("ns").Get(t.Context(), "stays", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, p.Status.Conditions[1].Reason)
	require.Equal(t, p.Generation, p.Status.Conditions[1].ObservedGeneration)
}
