// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumeView is what a round knows of volumes.
type volumeView struct {
	// claims are the names of the persistent volumes of the claims, "" if a claim has none.
	claims map[types.NamespacedName]string
	// known are the persistent volumes by name, named the other way round.
	known map[string]persistentVolume
	named map[volumeID]string
	// here are the volumes that are attached to the Node, by name; places is where.
	here   []attachedVolume
	places map[volumeID]int
	// elsewhere are those that are attached to another Node.
	elsewhere map[volumeID]struct{}
	// uses says who uses what.
	uses volumeUses
}

// persistentVolume is a PersistentVolume and what it is.
type persistentVolume struct {
	object *corev1.PersistentVolume
	id     volumeID
}

// attachedVolume is a volume that is attached to the Node.
type attachedVolume struct {
	id volumeID
	// name of the PersistentVolume, or what else the volume is called.
	name string
	// attachment that says so; nil if only the status of the Node does.
	attachment *storagev1.VolumeAttachment
}

// viewVolumes reads the sources. The order of what they give makes no difference.
func (r *round) viewVolumes() {
	v := &r.vol
	v.claims = make(map[types.NamespacedName]string, len(r.in.Claims.Items))
	for _, claim := range r.in.Claims.Items {
		if claim != nil {
			key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
			v.claims[key] = max(v.claims[key], claim.Spec.VolumeName) // it is bound once and for all
		}
	}
	v.known = make(map[string]persistentVolume, len(r.in.Volumes.Items))
	v.named = make(map[volumeID]string, len(r.in.Volumes.Items))
	for _, pv := range r.in.Volumes.Items {
		if pv != nil {
			v.addPersistent(pv)
		}
	}
	v.places = make(map[volumeID]int, len(r.in.Attachments.Items))
	v.elsewhere = make(map[volumeID]struct{})
	for _, va := range r.in.Attachments.Items {
		if va != nil {
			r.addAttachment(va)
		}
	}
	for i := range r.in.Node.Status.VolumesAttached {
		r.addUnique(string(r.in.Node.Status.VolumesAttached[i].Name))
	}
	slices.SortFunc(v.here, func(a, b attachedVolume) int { return cmp.Compare(a.name, b.name) })
	for i, a := range v.here {
		v.places[a.id] = i
	}
}

func (v *volumeView) addPersistent(pv *corev1.PersistentVolume) {
	if has, ok := v.known[pv.Name]; ok && !newerVolume(pv, has.object) {
		return
	}
	id, ok := persistentID(pv)
	if !ok {
		id = volumeID{name: pv.Name}
	}
	v.known[pv.Name] = persistentVolume{object: pv, id: id}
	if name, ok := v.named[id]; !ok || pv.Name < name {
		v.named[id] = pv.Name
	}
}

// newerVolume says whether a is a later copy than b.
func newerVolume(a, b *corev1.PersistentVolume) bool {
	return cmp.Or(
		compareVersions(a.ResourceVersion, b.ResourceVersion),
		cmp.Compare(a.UID, b.UID), cmp.Compare(a.Status.Phase, b.Status.Phase),
	) > 0
}

// addAttachment notes what is attached to the Node, and what to others. Of several
// attachments of one volume the first by name is told of.
func (r *round) addAttachment(va *storagev1.VolumeAttachment) {
	v := &r.vol
	id, name := attachmentID(va, v.id)
	switch {
	case va.Spec.NodeName != r.in.Node.Name:
		if va.Status.Attached && va.DeletionTimestamp.IsZero() {
			v.elsewhere[id] = struct{}{}
		}
	case !v.isHere(id):
		v.add(attachedVolume{id: id, name: name, attachment: va})
	default:
		if has := &v.here[v.places[id]]; compareAttachments(va, has.attachment) < 0 {
			has.attachment, has.name = va, name
		}
	}
}

// compareAttachments orders attachments by name, and copies of one by version, the
// newest first.
func compareAttachments(a, b *storagev1.VolumeAttachment) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name),
		compareVersions(b.ResourceVersion, a.ResourceVersion),
		cmp.Compare(a.UID, b.UID), cmp.Compare(detachError(a), detachError(b)),
	)
}

// addUnique notes what only the status of the Node says is attached. A CSI volume has
// an attachment, so if these are all known, a CSI volume that none of them is for
// counts only if somebody can be told to own it.
func (r *round) addUnique(unique string) {
	v := &r.vol
	if unique == "" {
		return
	}
	id, csi := uniqueID(unique)
	name, known := v.named[id]
	if v.isHere(id) || csi && r.in.Attachments.Complete && !known {
		return
	}
	if !known {
		name = unique
	}
	v.add(attachedVolume{id: id, name: name})
}

func (v *volumeView) add(a attachedVolume) {
	v.places[a.id] = len(v.here)
	v.here = append(v.here, a)
}

func (v *volumeView) isHere(id volumeID) bool {
	_, here := v.places[id]
	return here
}

// id is the volume of that name.
func (v *volumeView) id(name string) volumeID {
	if pv, known := v.known[name]; known {
		return pv.id
	}
	return volumeID{name: name}
}

// idOf is the volume that a state calls by that name.
func (v *volumeView) idOf(name string) volumeID {
	if _, known := v.known[name]; known || !isUnique(name) {
		return v.id(name)
	}
	id, _ := uniqueID(name)
	return id
}
