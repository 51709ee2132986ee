// SPDX-License-Identifier: Apache-2.0

// Package claims has the names of the PersistentVolumeClaims that pods use.
package claims

import corev1 "k8s.io/api/core/v1"

// Name returns the name of the PersistentVolumeClaim of a pod's volume, or "" if the volume has
// none. The claim of a generic ephemeral volume is named after the pod.
func Name(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	default:
		return ""
	}
}
