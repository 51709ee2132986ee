// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	finalizer = "external-attacher/csi-example-com"
	unique    = corev1.UniqueVolumeName("kubernetes.io/csi/csi.example.com^disk-data")
)

// withVolume returns a harness with a pod on a Node that waits for its volume.
func withVolume(t *testing.T) *harness {
	t.Helper()
	s := newHarness(t)
	s.nodes.Attachers, s.nodes.AttachTime, s.nodes.DetachTime = []string{driver}, 4*time.Second, 3*time.Second
	s.up("a")
	s.steps(11)
	s.podOn("a", "p", s.claim("data"))
	s.steps(3)
	return s
}

func TestVolumes_Attached_PodStarts(t *testing.T) {
	s := withVolume(t)
	require.Equal(t, corev1.PodPending, s.phase("p"))
	require.Equal(t, []corev1.UniqueVolumeName{unique}, s.node("a").Status.VolumesInUse)
	s.attach("data", "a", driver)
	s.steps(3)
	require.Equal(t, []string{finalizer}, s.attachment("data").Finalizers, "guarded before it is attached")
	require.False(t, s.attachment("data").Status.Attached)
	require.Equal(t, corev1.PodPending, s.phase("p"))
	s.steps(1)
	require.True(t, s.attachment("data").Status.Attached)
	s.steps(1)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
}

func TestVolumes_InVolumesAttached_PodStarts(t *testing.T) {
	s := withVolume(t)
	node := s.node("a")
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: unique}}
	_, err := s.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.steps(1)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
	require.Len(t, s.node("a").Status.VolumesAttached, 1, "the kubelet does not own it")
}

func TestVolumes_PodDeleted_DetachedAfterDetachTime(t *testing.T) {
	s := withVolume(t)
	s.attach("data", "a", driver)
	s.steps(5)
	s.delete("p")
	s.steps(9)
	require.Len(t, s.node("a").Status.VolumesInUse, 1)
	s.steps(2)
	require.Empty(t, s.node("a").Status.VolumesInUse)
	require.NoError(t, s.client.StorageV1().VolumeAttachments().Delete(t.Context(), "csi-data", metav1.DeleteOptions{}))
	s.steps(2)
	require.NotNil(t, s.attachment("data"))
	s.steps(1)
	require.Nil(t, s.attachment("data"))
}

func TestVolumes_NodeFrozen_StayInUse(t *testing.T) {
	s := withVolume(t)
	s.attach("data", "a", driver)
	s.steps(5)
	s.nodes.Freeze("a", true)
	require.NoError(t, s.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	s.steps(60)
	require.Len(t, s.node("a").Status.VolumesInUse, 1)
	s.nodes.Freeze("a", false)
	s.steps(1)
	require.Empty(t, s.node("a").Status.VolumesInUse)
}

func TestVolumes_VMDeleted_DetachesAndDoesNotAttach(t *testing.T) {
	s := withVolume(t)
	s.attach("data", "a", driver)
	s.steps(5)
	s.vms = nil
	s.attach("more", "a", driver)
	require.NoError(t, s.client.StorageV1().VolumeAttachments().Delete(t.Context(), "csi-data", metav1.DeleteOptions{}))
	s.steps(10)
	require.Nil(t, s.attachment("data"))
	require.False(t, s.attachment("more").Status.Attached)
}

func TestVolumes_OtherDriver_IsNotChanged(t *testing.T) {
	s := withVolume(t)
	s.attach("data", "a", "other.example.com")
	s.steps(10)
	require.Empty(t, s.attachment("data").Finalizers)
	require.False(t, s.attachment("data").Status.Attached)
}

func TestVolumes_NodeSilent_AttacherWorks(t *testing.T) {
	s := withVolume(t)
	s.nodes.Silence("a", true)
	s.attach("data", "a", driver)
	s.steps(5)
	require.True(t, s.attachment("data").Status.Attached)
	require.Equal(t, corev1.PodPending, s.phase("p"))
}

func TestVolumes_NotInVolumesInUse_PodDoesNotStart(t *testing.T) {
	s := newHarness(t)
	s.nodes.Attachers = []string{driver}
	s.up("a")
	s.steps(11)
	mount := s.claim("data")
	s.attach("data", "a", driver)
	s.steps(1)
	require.True(t, s.attachment("data").Status.Attached)
	s.podOn("a", "p", mount, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/keep"} })
	s.steps(1)
	require.Len(t, s.node("a").Status.VolumesInUse, 1)
	require.Equal(t, corev1.PodPending, s.phase("p"))
	s.steps(1)
	require.Equal(t, corev1.PodRunning, s.phase("p"))
	s.delete("p")
	s.steps(12)
	require.Equal(t, corev1.PodSucceeded, s.phase("p"))
	require.Empty(t, s.node("a").Status.VolumesInUse, "a pod at its end uses none")
}
