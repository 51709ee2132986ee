// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/claims"
)

// volumeUse has the first pod of each role that uses a volume. Nil means none.
type volumeUse struct {
	stays, abandoned, evicted *corev1.Pod
	// moves means that a controller recreates an evicted pod, so that another Node will use the
	// volume.
	moves bool
}

// volumeUses are the pods that use volumes.
type volumeUses struct {
	known *attachedVolumes
	// here has the pods of the volumes that are attached to the Node. byID has those of other
	// volumes.
	here []volumeUse
	byID map[volumeID]volumeUse
	// attached has for each row whether its pod has a volume that is attached to the Node.
	attached []bool
	// unclear has the pods with unknown claims.
	unclear volumeUse
}

// role is what the drain does with a pod that uses volumes.
type role int

const (
	roleNone role = iota // the pod uses no volume on this Node
	roleStays
	roleAbandoned
	roleEvicted
)

// newVolumeUses returns which pods use which volumes.
func newVolumeUses(v *view, known *attachedVolumes, pods []*corev1.Pod, rows []Row) *volumeUses {
	u := &volumeUses{
		known: known, here: make([]volumeUse, len(known.here)), byID: map[volumeID]volumeUse{},
		attached: make([]bool, len(rows)),
	}
	for i, pod := range pods {
		if r := roleOf(pod, &rows[i], v.in.Node.Name); r != roleNone && len(pod.Spec.Volumes) > 0 {
			u.attached[i] = u.addPod(pod, r, v.in.Claims.Complete)
		}
	}
	return u
}

// roleOf returns the role of a pod. Kubernetes detaches the volumes of a finished pod.
func roleOf(pod *corev1.Pod, row *Row, node string) role {
	switch {
	case finished(pod), pod.Spec.NodeName != node:
		return roleNone
	case row.Action != Ignore:
		return roleEvicted
	case row.Reason == ReasonAbandoned:
		return roleAbandoned
	default:
		return roleStays
	}
}

// addPod adds the volumes of a pod, and reports whether one of them is, or may be, attached to the
// Node.
func (u *volumeUses) addPod(pod *corev1.Pod, r role, complete bool) bool {
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
			attached = u.addPersistent(pod, name, r, volume.Ephemeral == nil && managed) || attached
		case !known && !complete:
			u.unclear.add(pod, r, false)
			attached = true
		}
	}
	return attached
}

// addPersistent adds a PersistentVolume of a pod, and reports whether it is attached to the Node.
func (u *volumeUses) addPersistent(pod *corev1.Pod, name string, r role, moves bool) bool {
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

// of returns the pods that use an attached volume. An evicted pod with unknown claims may use any
// volume.
func (u *volumeUses) of(a attachedVolume) volumeUse {
	use := u.here[u.known.places[a.id]]
	if use.stays != nil {
		return use
	}
	use.evicted = cmp.Or(use.evicted, u.unclear.evicted)
	return use
}

// add adds a pod that uses the volume.
func (u *volumeUse) add(pod *corev1.Pod, r role, moves bool) {
	switch r {
	case roleStays:
		u.stays = cmp.Or(u.stays, pod)
	case roleAbandoned:
		u.abandoned = cmp.Or(u.abandoned, pod)
	case roleEvicted:
		u.evicted, u.moves = cmp.Or(u.evicted, pod), u.moves || moves
	case roleNone:
	}
}
