// SPDX-License-Identifier: Apache-2.0

package drain

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// VolumeSubject is a volume that is attached to the Node, as a [VolumeRule] sees it. It
// must not be changed.
type VolumeSubject struct {
	// Node that it is attached to; never nil.
	Node *corev1.Node
	// Name of the PersistentVolume or, if it is not known, what the Node calls the volume.
	Name string
	// Attachment that says so; nil if only the status of the Node does.
	Attachment *storagev1.VolumeAttachment
	// Volume is the PersistentVolume; nil if it was not observed.
	Volume *corev1.PersistentVolume
}

// VolumeRule says that a volume is not waited for, and why in words for people. It must
// be pure: the same subject gives the same answer. With it a caller waits for the volumes
// of one driver only, or for none of a Node that says so.
type VolumeRule func(s VolumeSubject) (message string, skip bool)

// SkipVolumesOf returns the rule that waits for no volume of a Node which has the
// annotation, whatever its value.
func SkipVolumesOf(annotation string) VolumeRule {
	return func(s VolumeSubject) (string, bool) {
		_, has := s.Node.Annotations[annotation]
		return "the Node has the annotation " + annotation, has
	}
}

// skipVolume asks the rule of the policy.
func (r *round) skipVolume(a attachedVolume) (message string, skip bool) {
	if r.p.Volumes.Skip == nil {
		return "", false
	}
	return r.p.Volumes.Skip(VolumeSubject{
		Node: r.in.Node, Name: a.name, Attachment: a.attachment, Volume: r.vol.known[a.name].object,
	})
}
