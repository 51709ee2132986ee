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

// syncVolumes attaches what pods need, and reports it on their nodes, if something has changed.
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
	c.volumesChanged = false // by what was just done
}

// startAttach makes the attachments that pods need. A volume for one node at a time is attached when it has been
// detached from the other.
func (c *Cluster) startAttach(now time.Time) {
	on := map[string]map[string]bool{} // nodes by volume
	for _, attachment := range c.attachments() {
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

// attaching says who attaches a persistent volume, whether it is attached at all, and whether it may be to several
// nodes at a time. Of a volume that is not there the claims decide, and it is attached.
func (c *Cluster) attaching(volume string, pod *corev1.Pod) (driver string, attachable, shared bool) {
	obj, err := c.tracker.Get(persistentResource, "", volume)
	pv := orNil[corev1.PersistentVolume](obj)
	if err != nil || pv == nil {
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

// defaultAttacher attaches volumes that name no driver.
const defaultAttacher = "draintest.example.com"

func (c *Cluster) sharedByClaim(volume, namespace string) bool {
	list, err := c.tracker.List(claimsResource, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), namespace)
	if err != nil {
		return false
	}
	claims, ok := list.(*corev1.PersistentVolumeClaimList)
	return ok && slices.ContainsFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == volume && isShared(claim.Spec.AccessModes)
	})
}

func isShared(modes []corev1.PersistentVolumeAccessMode) bool {
	return slices.Contains(modes, corev1.ReadWriteMany) || slices.Contains(modes, corev1.ReadOnlyMany)
}

// createAttachment makes an attachment, which will say that the volume is attached when the time for that is over.
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

// finishAttach says of the attachments that are due that they are attached.
func (c *Cluster) finishAttach(now time.Time) {
	for _, key := range ordered(c.attach) {
		if c.attach[key].After(now) {
			continue
		}
		delete(c.attach, key)
		before := c.attachment(key.name)
		if before == nil || before.DeletionTimestamp != nil {
			continue
		}
		after := before.DeepCopy()
		after.Status.Attached = true
		req := request{actor: byAttachController, verb: "patch", resource: key.resource, subresource: "status", name: key.name}
		_, _ = c.replace(c.kinds[key.resource], req, before, after) // it was just read
	}
}

// reportVolumes writes into the status of nodes which volumes are attached to them, and which their pods use. Only
// CSI volumes are told of. A kubelet that is out of reach tells nothing.
func (c *Cluster) reportVolumes() {
	names := c.uniqueNames()
	attached := map[string][]corev1.AttachedVolume{}
	for _, a := range c.attachments() {
		if name := names[volumeOf(a)]; name != "" && a.Status.Attached {
			attached[a.Spec.NodeName] = append(attached[a.Spec.NodeName], corev1.AttachedVolume{Name: name})
		}
	}
	list, err := c.tracker.List(nodesResource, corev1.SchemeGroupVersion.WithKind("Node"), "")
	nodes, ok := list.(*corev1.NodeList)
	if err != nil || !ok {
		return
	}
	for i := range nodes.Items {
		before := &nodes.Items[i]
		after := before.DeepCopy()
		after.Status.VolumesAttached = attached[after.Name]
		if !c.silent[after.Name] {
			after.Status.VolumesInUse = c.volumesInUse(after.Name, names)
		}
		req := request{actor: byAttachController, verb: "patch", resource: nodesResource, subresource: "status", name: after.Name}
		_, _ = c.replace(c.kinds[nodesResource], req, before, after) // it was just read
	}
}

// uniqueNames returns what nodes call the CSI volumes.
func (c *Cluster) uniqueNames() map[string]corev1.UniqueVolumeName {
	list, err := c.tracker.List(persistentResource, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "")
	volumes, ok := list.(*corev1.PersistentVolumeList)
	if err != nil || !ok {
		return nil
	}
	names := make(map[string]corev1.UniqueVolumeName, len(volumes.Items))
	for i := range volumes.Items {
		if csi := volumes.Items[i].Spec.CSI; csi != nil {
			names[volumes.Items[i].Name] = corev1.UniqueVolumeName("kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle)
		}
	}
	return names
}

// volumesInUse returns what the pods of a node use.
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
