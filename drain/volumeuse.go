// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumeUse says which pods of the Node use a volume.
type volumeUse struct {
	// stays, abandoned and goes are the first pods that do, if they stay, were abandoned,
	// or are to go. Nil is none.
	stays, abandoned, goes *corev1.Pod
	// moves says that a pod which is to go will be made again, and will use it again.
	moves bool
	// unschedulable says that such a pod was made, and finds no Node.
	unschedulable bool
}

// volumeUses is who uses what, as far as it is known.
type volumeUses struct {
	// here are those of the volumes that are attached to the Node, byID of others.
	here []volumeUse
	byID map[volumeID]volumeUse
	// names are, for each row, the persistent volumes of its pod.
	names [][]string
	// attached says of each row whether its pod has a volume that is attached to the Node.
	attached []bool
	// unclear are those that use volumes which nobody could find out, unnamed those of
	// which only the name of the PersistentVolume is known.
	unclear, unnamed volumeUse
	// opaque is a pod that is to go and names an attachable volume itself.
	opaque *corev1.Pod
}

// role is what becomes of a pod, as seen from its volumes.
type role int

const (
	roleNone role = iota // it uses nothing on this Node
	roleStays
	roleAbandoned
	roleGoes
	roleUnschedulable
)

// usesVolumes finds out who uses what.
func (r *round) usesVolumes(rows []Row) {
	r.vol.uses = volumeUses{
		here: make([]volumeUse, len(r.vol.here)), byID: map[volumeID]volumeUse{},
		names: make([][]string, len(rows)), attached: make([]bool, len(rows)),
	}
	for i, pod := range r.lookup.pods {
		if i >= len(rows) {
			return
		}
		if who := r.role(pod, &rows[i]); who != roleNone && len(pod.Spec.Volumes) > 0 {
			r.vol.uses.names[i], r.vol.uses.attached[i] = r.noteVolumes(pod, who)
		}
	}
}

// role says what becomes of a pod. One that has finished uses nothing: Kubernetes
// detaches its volumes.
func (r *round) role(pod *corev1.Pod, row *Row) role {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return roleNone
	case pod.Spec.NodeName == "" && unschedulable(pod):
		return roleUnschedulable
	case pod.Spec.NodeName != r.in.Node.Name:
		return roleNone
	case row.Verdict != Ignore:
		return roleGoes
	case row.Reason == ReasonAbandoned:
		return roleAbandoned
	default:
		return roleStays
	}
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// noteVolumes notes the volumes of one pod. It returns the names of the persistent ones,
// and whether one of all is attached to the Node, or may be.
func (r *round) noteVolumes(pod *corev1.Pod, who role) ([]string, bool) {
	var few [4]string // most pods have no more
	names, attached := few[:0], false
	before := r.s.Pods[pod.UID].Volumes
	claims, unclear := 0, false
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		claim, ephemeral := claimOf(pod, volume)
		if claim == "" {
			attached = r.noteInline(pod, volume, who) || attached
			continue
		}
		claims++
		name, known := r.vol.claims[types.NamespacedName{Namespace: pod.Namespace, Name: claim}]
		switch {
		case name != "":
			names = append(names, name)
			attached = r.notePersistent(pod, name, who, !ephemeral && managed(pod)) || attached
		case !known && !r.in.Claims.Complete:
			unclear = true
		}
	}
	if unclear {
		for _, name := range before {
			if !slices.Contains(names, name) {
				names = append(names, name)
				attached = r.notePersistent(pod, name, who, managed(pod)) || attached
			}
		}
		if len(names) < claims {
			r.vol.uses.unclear.note(pod, who, false)
			attached = true
		}
	}
	slices.Sort(names)
	if slices.Equal(names, before) {
		return before, attached
	}
	return slices.Clone(names), attached
}

// noteInline notes a volume that a pod names itself.
func (r *round) noteInline(pod *corev1.Pod, volume *corev1.Volume, who role) bool {
	id, attachable := inlineID(&volume.VolumeSource)
	if !attachable {
		if volume.FlexVolume != nil { // what its driver calls it only the driver knows
			r.vol.uses.unnamed.note(pod, who, false)
		}
		return false
	}
	if who == roleGoes {
		r.vol.uses.opaque = cmp.Or(r.vol.uses.opaque, pod)
	}
	return r.noteUse(id, pod, who, managed(pod))
}

// notePersistent notes a persistent volume of a pod.
func (r *round) notePersistent(pod *corev1.Pod, name string, who role, moves bool) bool {
	id := r.vol.id(name)
	if id.kind == "" {
		r.vol.uses.unnamed.note(pod, who, false)
	}
	return r.noteUse(id, pod, who, moves)
}

func (r *round) noteUse(id volumeID, pod *corev1.Pod, who role, moves bool) bool {
	if place, here := r.vol.places[id]; here {
		r.vol.uses.here[place].note(pod, who, moves)
		return true
	}
	use := r.vol.uses.byID[id]
	use.note(pod, who, moves)
	r.vol.uses.byID[id] = use
	return false
}

// note adds a pod.
func (u *volumeUse) note(pod *corev1.Pod, who role, moves bool) {
	switch who {
	case roleStays:
		u.stays = cmp.Or(u.stays, pod)
	case roleAbandoned:
		u.abandoned = cmp.Or(u.abandoned, pod)
	case roleGoes:
		u.goes, u.moves = cmp.Or(u.goes, pod), u.moves || moves
	case roleUnschedulable:
		u.unschedulable = true
	case roleNone:
	}
}

// ClaimName returns the name of the PersistentVolumeClaim of a pod's volume, or "" if the
// volume has none. The claim of a generic ephemeral volume is named after the pod.
func ClaimName(pod *corev1.Pod, volume *corev1.Volume) string {
	name, _ := claimOf(pod, volume)
	return name
}

// claimOf returns the name of the claim of a volume, or "" if it has none. That of a
// generic ephemeral volume is made for the pod, and goes with it.
func claimOf(pod *corev1.Pod, volume *corev1.Volume) (claim string, ephemeral bool) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName, false
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name, true
	default:
		return "", false
	}
}
