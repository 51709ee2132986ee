// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/claims"
)

// volumeUse says which pods of the Node use a volume.
type volumeUse struct {
	// stays, abandoned and goes are the first pods that do, if they stay, were abandoned,
	// or are to go. Nil is none.
	stays, abandoned, goes *corev1.Pod
	// moves says that a controller will create such a pod again, which uses the volume again.
	moves bool
}

// volumeUses is what is known of the pods that use volumes.
type volumeUses struct {
	known *attachedVolumes
	// here are those of the volumes that are attached to the Node, byID of others.
	here []volumeUse
	byID map[volumeID]volumeUse
	// attached says of each row whether its pod has a volume that is attached to the Node.
	attached []bool
	// unclear are pods whose claims are not known.
	unclear volumeUse
}

// role is what becomes of a pod, as seen from its volumes.
type role int

const (
	roleNone role = iota // it uses nothing on this Node
	roleStays
	roleAbandoned
	roleGoes
)

// newVolumeUses finds out which pods use which volumes.
func newVolumeUses(v *view, known *attachedVolumes, pods []*corev1.Pod, rows []Row) *volumeUses {
	u := &volumeUses{
		known: known, here: make([]volumeUse, len(known.here)), byID: map[volumeID]volumeUse{},
		attached: make([]bool, len(rows)),
	}
	for i, pod := range pods {
		if r := roleOf(pod, &rows[i], v.in.Node.Name); r != roleNone && len(pod.Spec.Volumes) > 0 {
			u.attached[i] = u.note(pod, r, v.in.Claims.Complete)
		}
	}
	return u
}

// roleOf returns what becomes of a pod. One that has finished uses nothing: Kubernetes
// detaches its volumes.
func roleOf(pod *corev1.Pod, row *Row, node string) role {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return roleNone
	case pod.Spec.NodeName != node:
		return roleNone
	case row.Action != Ignore:
		return roleGoes
	case row.Reason == ReasonAbandoned:
		return roleAbandoned
	default:
		return roleStays
	}
}

// note notes the volumes of one pod, and reports whether one of them is attached to the Node,
// or may be.
func (u *volumeUses) note(pod *corev1.Pod, r role, complete bool) bool {
	managed, attached := metav1.GetControllerOfNoCopy(pod) != nil, false
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		claim := claims.Name(pod, volume)
		if claim == "" {
			continue
		}
		name, known := u.known.claims[types.NamespacedName{Namespace: pod.Namespace, Name: claim}]
		switch {
		case name != "":
			attached = u.notePersistent(pod, name, r, volume.Ephemeral == nil && managed) || attached
		case !known && !complete:
			u.unclear.add(pod, r, false)
			attached = true
		}
	}
	return attached
}

// notePersistent notes a PersistentVolume of a pod, and reports whether it is attached to the
// Node.
func (u *volumeUses) notePersistent(pod *corev1.Pod, name string, r role, moves bool) bool {
	id := u.known.id(name)
	if place, here := u.known.places[id]; here {
		u.here[place].add(pod, r, moves)
		return true
	}
	use := u.byID[id]
	use.add(pod, r, moves)
	u.byID[id] = use
	return false
}

// of returns the pods that use an attached volume, as far as they are known. A pod that goes
// and whose volumes are not known may use any of them.
func (u *volumeUses) of(a attachedVolume) volumeUse {
	use := u.here[u.known.places[a.id]]
	if use.stays != nil {
		return use
	}
	use.goes = cmp.Or(use.goes, u.unclear.goes)
	return use
}

// add adds a pod.
func (u *volumeUse) add(pod *corev1.Pod, r role, moves bool) {
	switch r {
	case roleStays:
		u.stays = cmp.Or(u.stays, pod)
	case roleAbandoned:
		u.abandoned = cmp.Or(u.abandoned, pod)
	case roleGoes:
		u.goes, u.moves = cmp.Or(u.goes, pod), u.moves || moves
	case roleNone:
	}
}
