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

// unmountTime is how long the attach controller waits for a kubelet that does not say that it has unmounted a volume.
const unmountTime = 6 * time.Minute

// volumesAfter notes a change that the attach controller reacts to. A pod that has finished needs its volumes no more
// than one that has gone.
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

// mounts reports whether a pod has its volumes mounted, or is about to.
func mounts(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// startDetach plans the removal of the volume attachments that only a pod that has just gone needed.
func (c *Cluster) startDetach(pod *corev1.Pod) {
	if c.options.DetachTime <= 0 || len(pod.Spec.Volumes) == 0 {
		return
	}
	volumes := c.volumesOf(pod)
	if len(volumes) == 0 {
		return
	}
	for _, attachment := range c.attachments() {
		if attachment.Spec.NodeName == pod.Spec.NodeName && volumes[volumeOf(attachment)] {
			c.detach[objectKey{resource: attachmentsResource, name: attachment.Name}] = c.clock.Now().Add(c.options.DetachTime)
		}
	}
}

// detachedAt returns when an attachment that is to be removed will be. The kubelet of a silent node does not
// confirm that it has unmounted a volume, so that takes longer, unless the node is out of service.
func (c *Cluster) detachedAt(key objectKey, due time.Time) time.Time {
	attachment := c.attachment(key.name)
	if attachment == nil || !c.silent[attachment.Spec.NodeName] || c.outOfService(attachment.Spec.NodeName) {
		return due
	}
	return due.Add(max(unmountTime-c.options.DetachTime, 0))
}

func (c *Cluster) outOfService(node string) bool {
	obj, err := c.tracker.Get(nodesResource, "", node)
	if err != nil {
		return false
	}
	n, ok := obj.(*corev1.Node)
	return ok && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// finishDetach removes the attachments that are due and that no pod on their node needs again.
func (c *Cluster) finishDetach(now time.Time) {
	for _, key := range ordered(c.detach) {
		if c.detachedAt(key, c.detach[key]).After(now) {
			continue
		}
		delete(c.detach, key)
		if attachment := c.attachment(key.name); attachment != nil && !c.isNeeded(attachment) {
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

// attachment returns a copy of the attachment of that name, or nil.
func (c *Cluster) attachment(name string) *storagev1.VolumeAttachment {
	obj, err := c.tracker.Get(attachmentsResource, "", name)
	if err != nil {
		return nil
	}
	return orNil[storagev1.VolumeAttachment](obj)
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

// volumesOf returns the names of the persistent volumes behind the claims of a pod, also of the claims of its generic
// ephemeral volumes.
func (c *Cluster) volumesOf(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range pod.Spec.Volumes {
		var claim string
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			claim = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			claim = pod.Name + "-" + volume.Name
		default:
			continue
		}
		obj, err := c.tracker.Get(claimsResource, pod.Namespace, claim)
		if err != nil {
			continue
		}
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
			names[claim.Spec.VolumeName] = true
		}
	}
	return names
}
