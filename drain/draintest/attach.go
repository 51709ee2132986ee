// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// syncVolumes attaches the volumes of pods and reports them in the status of nodes, after a change.
func (c *Cluster) syncVolumes(now time.Time) {
	c.finishAttach(now)
	if !c.volumesChanged {
		return
	}
	c.volumesChanged = false
	if c.options.AttachTime > 0 {
		c.startAttach(now)
	}
	if c.options.NodeVolumes {
		c.reportVolumes()
	}
	c.volumesChanged = false // by these writes
}

// startAttach creates the attachments for the volumes of pods. A volume that is not shared is attached after it was
// detached from the other node.
func (c *Cluster) startAttach(now time.Time) {
	on := map[string]map[string]bool{} // nodes by volume
	for _, attachment := range allOf[*storagev1.VolumeAttachment](c, attachmentsResource, "") {
		if volume := volumeOf(attachment); volume != "" {
			if on[volume] == nil {
				on[volume] = map[string]bool{}
			}
			on[volume][attachment.Spec.NodeName] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(c.index.pods)) {
		for _, pod := range inOrder(c.index.pods[namespace]) {
			if !mounts(pod) || pod.DeletionTimestamp != nil || len(pod.Spec.Volumes) == 0 {
				continue
			}
			for _, volume := range slices.Sorted(maps.Keys(c.volumesOf(pod))) {
				driver, attachable, shared := c.attaching(volume, pod)
				if !attachable || on[volume][pod.Spec.NodeName] || len(on[volume]) > 0 && !shared {
					continue
				}
				if on[volume] == nil {
					on[volume] = map[string]bool{}
				}
				on[volume][pod.Spec.NodeName] = true
				c.createAttachment(volume, pod.Spec.NodeName, driver, now)
			}
		}
	}
}

// attaching returns the driver of a persistent volume, whether it needs an attachment, and whether it may be attached to
// several nodes. A volume that does not exist is attached, and its claims decide whether it is shared.
func (c *Cluster) attaching(volume string, pod *corev1.Pod) (driver string, attachable, shared bool) {
	pv := stored[corev1.PersistentVolume](c, persistentResource, "", volume)
	if pv == nil {
		return defaultAttacher, true, c.sharedByClaim(volume, pod.Namespace)
	}
	s := &pv.Spec.PersistentVolumeSource
	switch {
	case s.CSI != nil:
		driver, attachable = s.CSI.Driver, true
	case s.NFS != nil, s.HostPath != nil, s.Local != nil, s.CephFS != nil, s.AzureFile != nil, s.Glusterfs != nil:
	default:
		driver, attachable = defaultAttacher, true
	}
	return driver, attachable, isShared(pv.Spec.AccessModes)
}

// defaultAttacher is the attacher of volumes without a CSI driver.
const defaultAttacher = "draintest.example.com"

func (c *Cluster) sharedByClaim(volume, namespace string) bool {
	return slices.ContainsFunc(allOf[*corev1.PersistentVolumeClaim](c, claimsResource, namespace), func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == volume && isShared(claim.Spec.AccessModes)
	})
}

func isShared(modes []corev1.PersistentVolumeAccessMode) bool {
	return slices.Contains(modes, corev1.ReadWriteMany) || slices.Contains(modes, corev1.ReadOnlyMany)
}

// createAttachment creates an attachment. After AttachTime its status says that the volume is attached.
func (c *Cluster) createAttachment(volume, node, driver string, now time.Time) {
	k := c.kinds[attachmentsResource]
	in := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
	in.Name = strings.Trim("csi-"+volume+"-"+node, "-.")
	req := request{actor: byAttachController, verb: "create", resource: attachmentsResource, name: in.Name}
	if _, err := c.create(k, req, in); err == nil {
		c.attach[objectKey{resource: attachmentsResource, name: in.Name}] = now.Add(c.options.AttachTime)
	}
}

// finishAttach sets status.attached of the attachments that are due.
func (c *Cluster) finishAttach(now time.Time) {
	for _, key := range ordered(c.attach) {
		if c.attach[key].After(now) {
			continue
		}
		delete(c.attach, key)
		before := stored[storagev1.VolumeAttachment](c, key.resource, "", key.name)
		if before == nil || before.DeletionTimestamp != nil {
			continue
		}
		after := before.DeepCopy()
		after.Status.Attached = true
		req := request{actor: byAttachController, verb: "patch", resource: key.resource, subresource: "status", name: key.name}
		_, _ = c.replace(c.kinds[key.resource], req, before, after) // it was just read
	}
}

// reportVolumes writes the CSI volumes that are attached to nodes, and those that their pods use, into the status of the
// nodes. A silent node does not report volumes in use.
func (c *Cluster) reportVolumes() {
	names := c.uniqueNames()
	attached := map[string][]corev1.AttachedVolume{}
	for _, a := range allOf[*storagev1.VolumeAttachment](c, attachmentsResource, "") {
		if name := names[volumeOf(a)]; name != "" && a.Status.Attached {
			attached[a.Spec.NodeName] = append(attached[a.Spec.NodeName], corev1.AttachedVolume{Name: name})
		}
	}
	for _, before := range allOf[*corev1.Node](c, nodesResource, "") {
		after := before.DeepCopy()
		after.Status.VolumesAttached = attached[after.Name]
		if !c.silent[after.Name] {
			after.Status.VolumesInUse = c.volumesInUse(after.Name, names)
		}
		req := request{actor: byAttachController, verb: "patch", resource: nodesResource, subresource: "status", name: after.Name}
		_, _ = c.replace(c.kinds[nodesResource], req, before, after) // it was just read
	}
}

// uniqueNames returns the names of CSI volumes in the status of nodes, by name of the persistent volume.
func (c *Cluster) uniqueNames() map[string]corev1.UniqueVolumeName {
	names := map[string]corev1.UniqueVolumeName{}
	for _, pv := range allOf[*corev1.PersistentVolume](c, persistentResource, "") {
		if csi := pv.Spec.CSI; csi != nil {
			names[pv.Name] = corev1.UniqueVolumeName("kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle)
		}
	}
	return names
}

// volumesInUse returns the volumes that the pods of a node use.
func (c *Cluster) volumesInUse(node string, names map[string]corev1.UniqueVolumeName) []corev1.UniqueVolumeName {
	var inUse []corev1.UniqueVolumeName
	for key := range c.index.nodes[node] {
		pod := c.index.pods[key.namespace][key.name]
		if !mounts(pod) {
			continue
		}
		for volume := range c.volumesOf(pod) {
			if name := names[volume]; name != "" {
				inUse = append(inUse, name)
			}
		}
	}
	slices.Sort(inUse)
	return slices.Compact(inUse)
}
