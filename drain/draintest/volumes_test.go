// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func volumePod(name, node, claim string) *corev1.Pod {
	pod := runningPod(name, node, nil)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	return pod
}

func volumeClaim(name, volume string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume, AccessModes: modes},
	}
}

func volumeOn(node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func csiVolume(name string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{AccessModes: modes, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "disk-" + name},
		}},
	}
}

// attachedTo returns the nodes of the attachments of volumes. Those that are not attached yet have a question mark.
func attachedTo(t *testing.T, client kubernetes.Interface) map[string][]string {
	t.Helper()
	list, err := client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	on := map[string][]string{}
	for _, a := range list.Items {
		node := a.Spec.NodeName
		if !a.Status.Attached {
			node += "?"
		}
		on[*a.Spec.Source.PersistentVolumeName] = append(on[*a.Spec.Source.PersistentVolumeName], node)
	}
	return on
}

func deleteNow(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	require.NoError(t, client.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
}

func TestVolume_Shared_AttachedToSeveralNodes(t *testing.T) {
	for name, volume := range map[string][]runtime.Object{
		"as its claim says":  {volumeClaim("data", "pv", corev1.ReadWriteMany)},
		"as the volume says": {volumeClaim("data", "pv", corev1.ReadWriteMany), csiVolume("pv", corev1.ReadOnlyMany)},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, clock := newCluster(t, func(o *draintest.Options) { o.DetachTime, o.AttachTime = time.Second, time.Second })
			require.NoError(t, c.Add(volumeOn("n1", "pv"), volumePod("a", "n1", "data"), volumePod("b", "n1", "data"), volumePod("c", "n2", "data")))
			require.NoError(t, c.Add(volume...))
			c.Tick()
			clock.Step(time.Second)
			c.Tick()
			require.ElementsMatch(t, []string{"n1", "n2"}, attachedTo(t, client)["pv"])
			deleteNow(t, client, "a")
			clock.Step(time.Second)
			c.Tick()
			require.ElementsMatch(t, []string{"n1", "n2"}, attachedTo(t, client)["pv"], "b still uses it")
			deleteNow(t, client, "b")
			clock.Step(time.Second)
			c.Tick()
			require.Equal(t, []string{"n2"}, attachedTo(t, client)["pv"])
		})
	}
}

func TestVolume_EphemeralClaim_DeletedWithPod(t *testing.T) {
	c, client, clock := newCluster(t, func(o *draintest.Options) { o.DetachTime, o.AttachTime = time.Second, time.Second })
	pod := runningPod("p", "n1", nil)
	pod.UID = "uid-p"
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	claim := volumeClaim("p-scratch", "pv")
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID("uid-p"), Controller: ptr.To(true)}}
	require.NoError(t, c.Add(pod, claim))
	c.Tick()
	clock.Step(time.Second)
	c.Tick()
	require.Equal(t, map[string][]string{"pv": {"n1"}}, attachedTo(t, client))
	deleteNow(t, client, "p")
	_, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "p-scratch", metav1.GetOptions{})
	require.Error(t, err)
	clock.Step(time.Second)
	require.True(t, c.Tick().IsZero())
	require.Empty(t, attachedTo(t, client), "although its claim is deleted")
}

func TestVolume_FinishedPod_IsDetached(t *testing.T) {
	c, client, clock := newCluster(t, func(o *draintest.Options) { o.DetachTime, o.AttachTime = time.Second, time.Second })
	require.NoError(t, c.Add(volumeClaim("data", "pv"), volumeOn("n1", "pv"), volumePod("p", "n1", "data")))
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Status.Phase = corev1.PodSucceeded
	_, err = client.CoreV1().Pods("ns").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, c.Tick().Equal(start.Add(time.Second)))
	clock.Step(time.Second)
	require.True(t, c.Tick().IsZero())
	require.Empty(t, attachedTo(t, client))
}

func TestVolume_SilentNode_DetachedLate(t *testing.T) {
	for name, test := range map[string]struct {
		taints []corev1.Taint
		after  time.Duration
	}{
		"after the unmount time of a silent kubelet": {after: 6 * time.Minute},
		"at once if the node is out of service":      {taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c, client, clock := newCluster(t, func(o *draintest.Options) { o.DetachTime = time.Second })
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: test.taints}}
			require.NoError(t, c.Add(node, volumeClaim("data", "pv"), volumeOn("n1", "pv"), volumePod("p", "n1", "data")))
			c.SetNodeSilent("n1", true)
			deleteNow(t, client, "p")
			require.Equal(t, test.after, c.Tick().Sub(start))
			clock.Step(test.after - time.Nanosecond)
			c.Tick()
			require.NotEmpty(t, attachedTo(t, client))
			clock.Step(time.Nanosecond)
			require.True(t, c.Tick().IsZero())
			require.Empty(t, attachedTo(t, client))
		})
	}
}

func TestNode_Volumes_AreReported(t *testing.T) {
	c, client, clock := newCluster(t, func(o *draintest.Options) {
		o.DetachTime, o.AttachTime, o.NodeVolumes = time.Second, time.Second, true
	})
	nfs := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}},
	}}
	require.NoError(t, c.Add(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, csiVolume("pv"), volumeClaim("data", "pv"), volumePod("p", "n1", "data"),
		nfs, volumeClaim("files", "nfs"), volumePod("q", "n1", "files"),
	))
	node := func() corev1.NodeStatus {
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		require.NoError(t, err)
		return n.Status
	}
	const name = "kubernetes.io/csi/csi.example.com^disk-pv"
	c.Tick()
	require.Empty(t, node().VolumesAttached)
	require.Equal(t, []corev1.UniqueVolumeName{name}, node().VolumesInUse)
	clock.Step(time.Second)
	c.Tick()
	require.Equal(t, []corev1.AttachedVolume{{Name: name}}, node().VolumesAttached)
	require.Equal(t, map[string][]string{"pv": {"n1"}}, attachedTo(t, client), "an NFS volume is not attached")
	deleteNow(t, client, "p")
	c.Tick()
	require.Empty(t, node().VolumesInUse)
	require.NotEmpty(t, node().VolumesAttached)
	clock.Step(time.Second)
	writes := len(c.History())
	require.True(t, c.Tick().IsZero())
	require.Empty(t, node().VolumesAttached)
	require.Len(t, c.History(), writes+2, "one detaches, one updates the status of the node")
}
