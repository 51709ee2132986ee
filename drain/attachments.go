// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumeID identifies a volume. Two names are of the same volume if their IDs are equal.
type volumeID struct {
	// driver is the CSI driver. It is empty if only a name is known.
	driver string
	// name is the handle of the driver, or the name of the PersistentVolume.
	name string
}

const csiPrefix = "kubernetes.io/csi/"

// uniqueID returns the volume of a unique name in the status of a Node, and whether it is a CSI
// volume: kubernetes.io/csi/DRIVER^HANDLE.
func uniqueID(name string) (id volumeID, csi bool) {
	rest, prefixed := strings.CutPrefix(name, csiPrefix)
	if driver, handle, ok := strings.Cut(rest, "^"); prefixed && ok && driver != "" {
		return volumeID{driver: driver, name: handle}, true
	}
	return volumeID{name: name}, false
}

// persistentID returns the volume of a PersistentVolume.
func persistentID(pv *corev1.PersistentVolume) volumeID {
	if csi := pv.Spec.CSI; csi != nil && csi.Driver != "" && csi.VolumeHandle != "" {
		return volumeID{driver: csi.Driver, name: csi.VolumeHandle}
	}
	return volumeID{name: pv.Name}
}

// attachedVolumes are the volumes of an observation, and where they are attached.
type attachedVolumes struct {
	// claims are the names of the PersistentVolumes of the claims, "" if a claim has none.
	claims map[types.NamespacedName]string
	// known are the PersistentVolumes by name. named are their names by volume.
	known map[string]*corev1.PersistentVolume
	named map[volumeID]string
	// here are the volumes that are attached to the Node, by name. places are their indexes in here.
	here   []attachedVolume
	places map[volumeID]int
	// elsewhere are the volumes that are attached to other Nodes.
	elsewhere map[volumeID]struct{}
}

// attachedVolume is a volume that is attached to the Node.
type attachedVolume struct {
	id volumeID
	// name is that of the PersistentVolume, or the unique name in the status of the Node.
	name string
	// attachment is nil for a volume that only the status of the Node shows.
	attachment *storagev1.VolumeAttachment
}

// newAttachedVolumes returns the volumes of an observation. The order of its lists does not matter.
func newAttachedVolumes(in *Observation) *attachedVolumes {
	v := &attachedVolumes{
		claims: make(map[types.NamespacedName]string, len(in.Claims.Items)),
		known:  make(map[string]*corev1.PersistentVolume, len(in.Volumes.Items)), named: make(map[volumeID]string, len(in.Volumes.Items)),
		places: make(map[volumeID]int, len(in.Attachments.Items)), elsewhere: map[volumeID]struct{}{},
	}
	for _, claim := range in.Claims.Items {
		if claim != nil {
			key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
			v.claims[key] = claim.Spec.VolumeName
		}
	}
	for _, pv := range in.Volumes.Items {
		if pv != nil {
			v.known[pv.Name], v.named[persistentID(pv)] = pv, pv.Name
		}
	}
	for _, va := range in.Attachments.Items {
		if va != nil {
			v.addAttachment(va, in.Node.Name)
		}
	}
	for i := range in.Node.Status.VolumesAttached {
		v.addUnique(string(in.Node.Status.VolumesAttached[i].Name), in.Attachments.Complete)
	}
	slices.SortFunc(v.here, func(a, b attachedVolume) int { return cmp.Compare(a.name, b.name) })
	for i, a := range v.here {
		v.places[a.id] = i
	}
	return v
}

// addAttachment adds the volume of an attachment to the Node or to another Node. The first of
// several attachments of a volume counts.
func (v *attachedVolumes) addAttachment(va *storagev1.VolumeAttachment, node string) {
	pv := va.Spec.Source.PersistentVolumeName
	if pv == nil || *pv == "" {
		return
	}
	id := v.id(*pv)
	switch {
	case va.Spec.NodeName != node:
		if va.Status.Attached && va.DeletionTimestamp.IsZero() {
			v.elsewhere[id] = struct{}{}
		}
	case !v.isHere(id):
		v.add(attachedVolume{id: id, name: *pv, attachment: va})
	}
}

// addUnique adds a CSI volume that only the status of the Node shows as attached. With a complete
// list of attachments it counts only if its PersistentVolume is known.
func (v *attachedVolumes) addUnique(unique string, complete bool) {
	id, csi := uniqueID(unique)
	name, known := v.named[id]
	if csi && !v.isHere(id) && (known || !complete) {
		v.add(attachedVolume{id: id, name: cmp.Or(name, unique)})
	}
}

func (v *attachedVolumes) add(a attachedVolume) {
	v.places[a.id] = len(v.here)
	v.here = append(v.here, a)
}

func (v *attachedVolumes) isHere(id volumeID) bool {
	_, here := v.places[id]
	return here
}

// id returns the volume of a PersistentVolume's name.
func (v *attachedVolumes) id(name string) volumeID {
	if pv := v.known[name]; pv != nil {
		return persistentID(pv)
	}
	return volumeID{name: name}
}

// idOf returns the volume of a name in [State].Volumes.
func (v *attachedVolumes) idOf(name string) volumeID {
	if v.known[name] != nil {
		return v.id(name)
	}
	id, _ := uniqueID(name)
	return id
}

// isElsewhere reports whether a volume is attached to another Node, or was deleted, released or
// has failed.
func (v *attachedVolumes) isElsewhere(name string, id volumeID, complete bool) bool {
	if _, is := v.elsewhere[id]; is {
		return true
	}
	pv := v.known[name]
	if pv == nil {
		return complete && !strings.Contains(name, "/") // it was deleted
	}
	return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
}
