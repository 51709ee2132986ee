// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mount is a volume that must be attached before a pod can start.
type mount struct {
	volume string                  // the name of the PersistentVolume
	unique corev1.UniqueVolumeName // its name in the status of Nodes
}

// mountsOf returns the mounts of a pod. It returns false if a claim is not bound yet.
func mountsOf(v view, pod *corev1.Pod) ([]mount, bool) {
	var mounts []mount
	complete := true
	for _, vol := range pod.Spec.Volumes {
		var name string
		switch {
		case vol.PersistentVolumeClaim != nil:
			name = vol.PersistentVolumeClaim.ClaimName
		case vol.Ephemeral != nil:
			name = pod.Name + "-" + vol.Name
		default:
			continue
		}
		pv := volumeOf(v, pod.Namespace, name)
		switch {
		case pv == nil:
			complete = false
		case pv.Spec.CSI != nil:
			unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + pv.Spec.CSI.Driver + "^" + pv.Spec.CSI.VolumeHandle)
			mounts = append(mounts, mount{pv.Name, unique})
		}
	}
	return mounts, complete
}

// volumeOf returns the volume of a claim, or nil.
func volumeOf(v view, namespace, name string) *corev1.PersistentVolume {
	if v.claim == nil || v.volume == nil {
		return nil
	}
	claim := v.claim(namespace, name)
	if claim == nil || claim.Spec.VolumeName == "" {
		return nil
	}
	return v.volume(claim.Spec.VolumeName)
}

// volumesInUse returns the volumesInUse of the Node, which the attach-detach controller does not
// detach. A frozen Node keeps all of them.
func volumesInUse(v view) []corev1.UniqueVolumeName {
	var names []corev1.UniqueVolumeName
	if v.told.frozen {
		return slices.Clone(v.node.Status.VolumesInUse)
	}
	for _, pod := range v.pods {
		if hasEnded(pod) {
			continue
		}
		mounts, _ := mountsOf(v, pod)
		for _, m := range mounts {
			names = append(names, m.unique)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isMounted reports whether the volumes of a pod are in use by the Node and attached to it.
func isMounted(v view, pod *corev1.Pod) bool {
	mounts, complete := mountsOf(v, pod)
	if !complete {
		return false
	}
	for _, m := range mounts {
		if v.node == nil || !slices.Contains(v.node.Status.VolumesInUse, m.unique) {
			return false
		}
		attached := slices.ContainsFunc(v.node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == m.unique })
		if !attached && (v.attached == nil || !v.attached(m.volume)) {
			return false
		}
	}
	return true
}
