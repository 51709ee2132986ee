// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	attachmentsResource = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	claimsResource      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
)

// startDetach plans the removal of the volume attachments that only a pod that has just gone needed.
func (c *Cluster) startDetach(gone runtime.Object) {
	pod, ok := gone.(*corev1.Pod)
	if !ok || c.options.DetachTime <= 0 || pod.Spec.NodeName == "" {
		return
	}
	volumes := c.volumesOf(pod)
	if len(volumes) == 0 {
		return
	}
	for _, attachment := range c.attachments() {
		source := attachment.Spec.Source.PersistentVolumeName
		if attachment.Spec.NodeName == pod.Spec.NodeName && source != nil && volumes[*source] {
			c.detach[objectKey{resource: attachmentsResource, name: attachment.Name}] = c.clock.Now().Add(c.options.DetachTime)
		}
	}
}

// finishDetach removes the attachments that are due and that no pod on their node needs again.
func (c *Cluster) finishDetach(now time.Time) {
	due := map[objectKey]struct{}{}
	for key, at := range c.detach {
		if !at.After(now) {
			due[key] = struct{}{}
			delete(c.detach, key)
		}
	}
	for _, key := range ordered(due) {
		obj, err := c.tracker.Get(key.resource, "", key.name)
		if err != nil {
			continue
		}
		if attachment, ok := obj.(*storagev1.VolumeAttachment); ok && !c.isNeeded(attachment) {
			req := request{actor: AttachController, verb: "delete", resource: key.resource, name: key.name}
			_ = c.delete(c.kinds[key.resource], req, metav1.DeleteOptions{}) // it was just read
		}
	}
}

// isNeeded says whether a pod on the node of an attachment uses its volume.
func (c *Cluster) isNeeded(attachment *storagev1.VolumeAttachment) bool {
	source := attachment.Spec.Source.PersistentVolumeName
	if source == nil {
		return true
	}
	for _, pods := range c.index.pods {
		for _, pod := range pods {
			if pod.Spec.NodeName == attachment.Spec.NodeName && c.volumesOf(pod)[*source] {
				return true
			}
		}
	}
	return false
}

func (c *Cluster) attachments() []*storagev1.VolumeAttachment {
	list, err := c.tracker.List(attachmentsResource, storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), "")
	if err != nil {
		return nil
	}
	typed, ok := list.(*storagev1.VolumeAttachmentList)
	if !ok {
		return nil
	}
	found := make([]*storagev1.VolumeAttachment, 0, len(typed.Items))
	for i := range typed.Items {
		found = append(found, &typed.Items[i])
	}
	return found
}

// volumesOf returns the names of the persistent volumes behind the claims of a pod.
func (c *Cluster) volumesOf(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		obj, err := c.tracker.Get(claimsResource, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if err != nil {
			continue
		}
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
			names[claim.Spec.VolumeName] = true
		}
	}
	return names
}
