// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// timed are options of a cluster that needs a second to detach or attach a volume.
var timed = draintest.Options{DetachTime: time.Second, AttachTime: time.Second}

// attached returns the attachments as VOLUME@NODE, sorted. Those that are not attached yet have a question mark.
func (w *world) attached() []string {
	w.t.Helper()
	var all []string
	for _, a := range must(w.client.StorageV1().VolumeAttachments().List(w.t.Context(), metav1.ListOptions{})).Items {
		name := *a.Spec.Source.PersistentVolumeName + "@" + a.Spec.NodeName
		if !a.Status.Attached {
			name += "?"
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestVolume_Shared_AttachedToSeveralNodes(t *testing.T) {
	for name, volume := range map[string][]runtime.Object{
		"as its claim says":  {volumeClaim("data", "pv", corev1.ReadWriteMany)},
		"as the volume says": {volumeClaim("data", "pv", corev1.ReadWriteMany), csiVolume("pv", corev1.ReadOnlyMany)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, timed, volumeOn("n1", "pv"), volumePod("a", "n1", "data"), volumePod("b", "n1", "data"))
			require.NoError(t, w.Add(append(volume, volumePod("c", "n2", "data"))...))
			w.Tick()
			for pod, want := range [][]string{{"pv@n1", "pv@n2"}, {"pv@n1", "pv@n2"}, {"pv@n2"}} {
				if pod > 0 {
					w.remove([]string{"a", "b"}[pod-1], 0)
				}
				w.after(time.Second)
				require.Equal(t, want, w.attached())
			}
		})
	}
}

func TestVolume_EphemeralClaim_DeletedWithPod(t *testing.T) {
	pod := runningPod("p", "n1", nil)
	pod.UID = "uid-p"
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	claim := ownedBy(volumeClaim("p-scratch", "pv"), pod, "Pod")
	claim.OwnerReferences[0].APIVersion = "v1"
	w := newWorld(t, timed, pod, claim)
	w.Tick()
	w.after(time.Second)
	require.Equal(t, []string{"pv@n1"}, w.attached())
	w.remove("p", 0)
	claims := w.client.CoreV1().PersistentVolumeClaims("ns")
	require.Error(t, second(claims.Get(t.Context(), "p-scratch", metav1.GetOptions{})))
	require.Zero(t, w.after(time.Second))
	require.Empty(t, w.attached(), "although its claim is deleted")
}

func TestVolume_FinishedPod_IsDetached(t *testing.T) {
	w := newWorld(t, timed, volumeClaim("data", "pv"), volumeOn("n1", "pv"), volumePod("p", "n1", "data"))
	pod := w.pod("p")
	pod.Status.Phase = corev1.PodSucceeded
	must(w.pods().UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))
	require.WithinDuration(t, start.Add(time.Second), w.Tick(), 0)
	require.Zero(t, w.after(time.Second))
	require.Empty(t, w.attached())
}

func TestVolume_SilentNode_DetachedLate(t *testing.T) {
	for after, taints := range map[time.Duration][]corev1.Taint{
		6 * time.Minute: nil, // after the unmount time of a silent kubelet
		time.Second:     {{Key: corev1.TaintNodeOutOfService}},
	} {
		node := newNode("n1")
		node.Spec.Taints = taints
		w := newWorld(t, timed, node, volumeClaim("data", "pv"), volumeOn("n1", "pv"), volumePod("p", "n1", "data"))
		w.SetNodeSilent("n1", true)
		w.remove("p", 0)
		require.WithinDuration(t, start.Add(after), w.Tick(), 0)
		w.after(after - time.Nanosecond)
		require.NotEmpty(t, w.attached())
		require.Zero(t, w.after(time.Nanosecond))
		require.Empty(t, w.attached())
	}
}

func TestNode_Volumes_AreReported(t *testing.T) {
	options := timed
	options.NodeVolumes = true
	nfs := csiVolume("nfs")
	nfs.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}
	w := newWorld(t, options, newNode("n1"), csiVolume("pv"), volumeClaim("data", "pv"), volumePod("p", "n1", "data"),
		nfs, volumeClaim("files", "nfs"), volumePod("q", "n1", "files"))
	const name = "kubernetes.io/csi/csi.example.com^disk-pv"
	reported := func(inUse []corev1.UniqueVolumeName, attached []corev1.AttachedVolume) {
		t.Helper()
		status := must(w.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})).Status
		require.Equal(t, inUse, status.VolumesInUse)
		require.Equal(t, attached, status.VolumesAttached)
	}
	w.Tick()
	reported([]corev1.UniqueVolumeName{name}, nil)
	w.after(time.Second)
	reported([]corev1.UniqueVolumeName{name}, []corev1.AttachedVolume{{Name: name}})
	require.Equal(t, []string{"pv@n1"}, w.attached(), "an NFS volume is not attached")
	w.remove("p", 0)
	w.Tick()
	reported(nil, []corev1.AttachedVolume{{Name: name}})
	writes := len(w.History())
	require.Zero(t, w.after(time.Second))
	reported(nil, nil)
	require.Len(t, w.History(), writes+2, "one detaches, one updates the status of the node")
}
