// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestPod_Deleted_StaysForItsGracePeriod(t *testing.T) {
	c, client, clock := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", web)))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, pod.DeletionTimestamp.Time.Equal(start.Add(30*time.Second)))
	require.EqualValues(t, 30, *pod.DeletionGracePeriodSeconds)
	require.EqualValues(t, 2, pod.Generation)
	version := pod.ResourceVersion

	require.True(t, c.Tick().Equal(start.Add(30*time.Second)))
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(60))}), "longer is no change")
	require.Equal(t, version, c.ResourceVersion())

	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(10))}))
	pod, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, pod.DeletionTimestamp.Time.Equal(start.Add(10*time.Second)), "shorter counts from the first deletion")

	clock.Step(9 * time.Second)
	c.Tick()
	require.True(t, exists(t, client, "p"))
	clock.Step(time.Second)
	require.True(t, c.Tick().IsZero())
	require.False(t, exists(t, client, "p"))
}

func TestPod_Finalizer_OutlastsGracePeriod(t *testing.T) {
	c, client, clock := newCluster(t)
	pod := runningPod("p", "n1", nil)
	pod.Finalizers = []string{"a/b"}
	require.NoError(t, c.Add(pod))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	clock.Step(time.Minute)
	require.True(t, c.Tick().IsZero())
	require.True(t, c.Tick().IsZero(), "nothing is due")
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Zero(t, *pod.DeletionGracePeriodSeconds)
	pod.Finalizers = nil
	_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.False(t, exists(t, client, "p"))
}

func TestNode_Silent_PodsStay(t *testing.T) {
	c, client, clock := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", nil), runningPod("forced", "n1", nil)))
	pods := client.CoreV1().Pods("ns")
	c.SetNodeSilent("n1", true)
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	clock.Step(time.Hour)
	require.True(t, c.Tick().IsZero())
	require.True(t, exists(t, client, "p"))
	require.NoError(t, pods.Delete(t.Context(), "forced", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	require.False(t, exists(t, client, "forced"))

	c.SetNodeSilent("n1", false)
	c.Tick()
	require.False(t, exists(t, client, "p"))
}

func TestPod_StopTime_AtMostGracePeriod(t *testing.T) {
	stop := 12 * time.Second
	c, client, _ := newCluster(t, func(o *draintest.Options) {
		o.StopTime = func(*corev1.Pod) time.Duration { return stop }
	})
	require.NoError(t, c.Add(runningPod("p", "n1", nil)))
	require.NoError(t, client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	require.True(t, c.Tick().Equal(start.Add(12*time.Second)))
	stop = time.Hour
	require.True(t, c.Tick().Equal(start.Add(30*time.Second)))
	stop = -1
	require.True(t, c.Tick().IsZero())
	require.False(t, exists(t, client, "p"))
}
