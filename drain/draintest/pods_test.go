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

func TestPod_Deleted_StaysForItsGracePeriod(t *testing.T) {
	w := newWorld(t, draintest.Options{}, runningPod("p", "n1", web))
	w.remove("p")
	pod := w.pod("p")
	require.WithinDuration(t, start.Add(30*time.Second), pod.DeletionTimestamp.Time, 0)
	require.Equal(t, []int64{30, 2}, []int64{*pod.DeletionGracePeriodSeconds, pod.Generation})
	require.WithinDuration(t, start.Add(30*time.Second), w.Tick(), 0)
	w.remove("p")
	w.remove("p", 60)
	require.Equal(t, pod.ResourceVersion, w.ResourceVersion(), "a longer grace period is no change")
	w.remove("p", 10)
	require.WithinDuration(t, start.Add(10*time.Second), w.pod("p").DeletionTimestamp.Time, 0, "from the first deletion")
	w.after(9 * time.Second)
	require.True(t, w.exists("p"))
	require.Zero(t, w.after(time.Second))
	require.False(t, w.exists("p"))
}

func TestPod_Finalizer_OutlastsGracePeriod(t *testing.T) {
	pod := runningPod("p", "n1", nil)
	pod.Finalizers = []string{"a/b"}
	w := newWorld(t, draintest.Options{}, pod)
	w.remove("p")
	older := w.pod("p")
	require.Zero(t, w.after(time.Minute))
	require.Zero(t, w.Tick(), "nothing is due")
	require.True(t, apierrors.IsConflict(second(w.pods().Update(t.Context(), older, metav1.UpdateOptions{}))))
	pod = w.pod("p")
	require.Zero(t, *pod.DeletionGracePeriodSeconds)
	pod.Finalizers = nil
	must(w.pods().Update(t.Context(), pod, metav1.UpdateOptions{}))
	require.False(t, w.exists("p"))
}

func TestNode_Silent_PodsStay(t *testing.T) {
	w := newWorld(t, draintest.Options{}, runningPod("p", "n1", nil), runningPod("forced", "n1", nil))
	w.SetNodeSilent("n1", true)
	w.remove("p")
	require.Zero(t, w.after(time.Hour))
	w.remove("forced", 0)
	require.Equal(t, []bool{true, false}, []bool{w.exists("p"), w.exists("forced")})
	w.SetNodeSilent("n1", false)
	w.Tick()
	require.False(t, w.exists("p"))
}

func TestPod_StopTime_AtMostGracePeriod(t *testing.T) {
	var stop time.Duration
	options := draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return stop }}
	w := newWorld(t, options, runningPod("p", "n1", nil))
	stop = 12 * time.Second
	w.remove("p")
	require.WithinDuration(t, start.Add(12*time.Second), w.Tick(), 0)
	stop = time.Hour
	require.WithinDuration(t, start.Add(30*time.Second), w.Tick(), 0)
	stop = -1
	require.Zero(t, w.Tick())
	require.False(t, w.exists("p"))
}
