// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	attachmentsResource = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	claimsResource      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	persistentResource  = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
)

// unmountTime is how long the attach controller waits for a silent kubelet to unmount a volume.
const unmountTime = 6 * time.Minute

// volumesAfter records a change for the attach controller. A finished or deleted pod does not use its volumes.
func (c *Cluster) volumesAfter(key objectKey, before, after runtime.Object) {
	switch key.resource {
	case podsResource:
		was, is := orNil[corev1.Pod](before), orNil[corev1.Pod](after)
		if was != nil && mounts(was) && (is == nil || was.UID != is.UID || !mounts(is)) {
			c.startDetach(was)
		}
	case attachmentsResource, claimsResource, persistentResource, nodesResource:
	default:
		return
	}
	c.volumesChanged = true
}

// mounts reports whether a pod uses its volumes.
func mounts(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// startDetach sets when to remove the volume attachments of a pod that does not use them anymore.
func (c *Cluster) startDetach(pod *corev1.Pod) {
	if c.options.DetachTime <= 0 || len(pod.Spec.Volumes) == 0 {
		return
	}
	volumes := c.volumesOf(pod)
	if len(volumes) == 0 {
		return
	}
	for _, attachment := range allOf[*storagev1.VolumeAttachment](c, attachmentsResource, "") {
		if attachment.Spec.NodeName == pod.Spec.NodeName && volumes[volumeOf(attachment)] {
			c.detach[objectKey{resource: attachmentsResource, name: attachment.Name}] = c.clock.Now().Add(c.options.DetachTime)
		}
	}
}

// detachedAt returns when an attachment is removed. For a silent node it takes longer, unless the node is out of service.
func (c *Cluster) detachedAt(key objectKey, due time.Time) time.Time {
	attachment := stored[storagev1.VolumeAttachment](c, key.resource, "", key.name)
	if attachment == nil || !c.silent[attachment.Spec.NodeName] || c.outOfService(attachment.Spec.NodeName) {
		return due
	}
	return due.Add(max(unmountTime-c.options.DetachTime, 0))
}

func (c *Cluster) outOfService(node string) bool {
	n := stored[corev1.Node](c, nodesResource, "", node)
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// finishDetach removes the attachments that are due, unless a pod on their node uses them.
func (c *Cluster) finishDetach(now time.Time) {
	for _, key := range ordered(c.detach) {
		if c.detachedAt(key, c.detach[key]).After(now) {
			continue
		}
		delete(c.detach, key)
		if attachment := stored[storagev1.VolumeAttachment](c, key.resource, "", key.name); attachment != nil && !c.isNeeded(attachment) {
			req := request{actor: byAttachController, verb: "delete", resource: key.resource, name: key.name}
			_ = c.delete(c.kinds[key.resource], req, metav1.DeleteOptions{}) // it was just read
		}
	}
}

// isNeeded reports whether a pod on the node of an attachment uses its volume.
func (c *Cluster) isNeeded(attachment *storagev1.VolumeAttachment) bool {
	volume := volumeOf(attachment)
	if volume == "" {
		return true
	}
	for key := range c.index.nodes[attachment.Spec.NodeName] {
		if pod := c.index.pods[key.namespace][key.name]; mounts(pod) && c.volumesOf(pod)[volume] {
			return true
		}
	}
	return false
}

// volumeOf returns the name of the persistent volume of an attachment, or "".
func volumeOf(attachment *storagev1.VolumeAttachment) string {
	if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

// volumesOf returns the names of the persistent volumes of a pod, also of generic ephemeral volumes.
func (c *Cluster) volumesOf(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range pod.Spec.Volumes {
		var name string
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			name = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			name = pod.Name + "-" + volume.Name
		}
		if claim := stored[corev1.PersistentVolumeClaim](c, claimsResource, pod.Namespace, name); claim != nil && claim.Spec.VolumeName != "" {
			names[claim.Spec.VolumeName] = true
		}
	}
	return names
}
