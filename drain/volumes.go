// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist/internal/recorded"
)

// volumes decides about the volumes of the Node, once it is decided about its pods. A
// volume is waited for if it is attached and no pod that stays uses it: that its pod was
// seen to go need not be remembered. As long as there is no room on the way for another
// pod with volumes, it holds the requests of all that are still to be asked.
func (r *round) volumes(rows []Row) []VolumeRow {
	before := r.s.Volumes
	if !r.p.Volumes.Wait {
		r.s.Volumes = nil
	}
	if !r.p.Volumes.Wait && r.p.Volumes.AtOnce <= 0 {
		return nil
	}
	r.viewVolumes()
	r.usesVolumes(rows)
	var volumes []VolumeRow
	if r.p.Volumes.Wait {
		r.s.Volumes = make(map[string]VolumeState, len(r.vol.here))
		volumes = make([]VolumeRow, 0, len(r.vol.here))
		for _, a := range r.vol.here {
			row, s := r.attached(a, before[a.name])
			volumes = append(volumes, r.rememberVolume(row, s, before[a.name]))
		}
		volumes = append(volumes, r.detached(before)...)
		if len(volumes) == 0 && !r.in.Attachments.Complete && len(r.in.Node.Status.VolumesAttached) == 0 {
			volumes = append(volumes, VolumeRow{
				Verdict: Ignore, Reason: ReasonNotEvaluated, Message: "nobody was asked which volumes are attached",
			})
		}
	}
	if r.limitsVolumes() && r.volumeSlots(rows) <= 0 {
		r.limitVolumes(rows)
	}
	return volumes
}

// attached decides about a volume that is attached to the Node.
func (r *round) attached(a attachedVolume, before VolumeState) (VolumeRow, VolumeState) {
	use := r.volumeUse(a)
	row := VolumeRow{Volume: a.name, Verdict: Ignore}
	if a.attachment != nil {
		row.Attachment = a.attachment.Name
	}
	message, skip := r.skipVolume(a)
	switch {
	case skip:
		row.Reason, row.Message = ReasonRule, message
	case use.stays != nil:
		row.Reason, row.Message = ReasonStays, usedBy(use.stays)+", which stays"
	case use.abandoned != nil:
		row.Reason, row.Message = ReasonAbandoned, usedBy(use.abandoned)
	case r.in.Reachability.State == Unreachable:
		row.Reason, row.Message = ReasonUnreachable, "nobody on the Node unmounts it"
		return row, VolumeState{Pod: before.Pod, Moves: before.Moves}
	case use.goes != nil:
		row.Verdict, row.Reason, row.Message = Wait, ReasonInUse, usedBy(use.goes)
		return row, VolumeState{Pod: use.goes.UID, Moves: use.moves}
	case a.id.kind == attachmentKind && before.Pod == "":
		row.Reason, row.Message = ReasonNotEvaluated, "its attachment does not say which volume it is"
	default:
		return r.free(a, row, before)
	}
	return row, VolumeState{}
}

// volumeUse says who uses an attached volume, as far as it is known. A pod that goes
// and whose volumes are not known may use any of them.
func (r *round) volumeUse(a attachedVolume) volumeUse {
	u := &r.vol.uses
	use := u.here[r.vol.places[a.id]]
	if use.stays != nil {
		return use
	}
	use.goes = cmp.Or(use.goes, u.unclear.goes)
	if a.attachment == nil && isUnique(a.name) {
		use.goes = cmp.Or(use.goes, u.unnamed.goes)
	}
	if a.id.kind == attachmentKind {
		use.goes = cmp.Or(use.goes, u.opaque)
	}
	return use
}

// free waits for a volume that nothing on the Node is known to use any more, but no
// longer than the policy says.
func (r *round) free(a attachedVolume, row VolumeRow, before VolumeState) (VolumeRow, VolumeState) {
	s := VolumeState{FreeAt: r.pastOrNow(before.FreeAt), Pod: before.Pod, Moves: before.Moves}
	until, over := r.expiry(s.FreeAt, r.p.Volumes.DetachTimeout)
	if over {
		s.Done = true
		row.Reason, row.Message = ReasonTimedOut, "it is still attached after "+r.p.Volumes.DetachTimeout.String()
		return row, s
	}
	row.Verdict, row.Reason, row.Until = Wait, ReasonDetaching, until
	if a.attachment != nil {
		row.Message = detachError(a.attachment)
	}
	u := &r.vol.uses
	who := u.unclear.stays
	if a.attachment == nil && isUnique(a.name) {
		who = cmp.Or(who, u.unnamed.stays)
	}
	if who != nil {
		row.Reason = ReasonNotEvaluated
		row.Message = "a pod that stays may use it, " + who.Namespace + "/" + who.Name + ", whose volumes are not known"
	}
	return row, s
}

// detached decides about the volumes that were attached to the Node before, and which
// their pods will use elsewhere.
func (r *round) detached(before map[string]VolumeState) []VolumeRow {
	if !r.p.Volumes.Reattach {
		return nil
	}
	var rows []VolumeRow
	for _, name := range slices.Sorted(maps.Keys(before)) {
		s, id := before[name], r.vol.idOf(name)
		if _, here := r.s.Volumes[name]; here || !s.Moves || s.Done || r.vol.isHere(id) {
			continue
		}
		use := r.vol.uses.byID[id]
		if use.goes != nil { // and so it will be attached, or be used no more
			r.s.Volumes[name] = s
			continue
		}
		if use.stays != nil || r.isElsewhere(name, id) {
			continue
		}
		rows = append(rows, r.reattaching(name, s, use))
	}
	return rows
}

// isElsewhere says whether a volume is attached to another Node, or never will be.
func (r *round) isElsewhere(name string, id volumeID) bool {
	if _, is := r.vol.elsewhere[id]; is {
		return true
	}
	pv, known := r.vol.known[name]
	if !known {
		return r.in.Volumes.Complete && !isUnique(name) // it was deleted
	}
	return pv.object.Status.Phase == corev1.VolumeReleased || pv.object.Status.Phase == corev1.VolumeFailed
}

// reattaching waits until a volume is attached elsewhere, but no longer than the policy
// says. If nobody can tell, or its pod finds no Node, it is not waited for.
func (r *round) reattaching(name string, before VolumeState, use volumeUse) VolumeRow {
	s := VolumeState{DetachedAt: r.pastOrNow(before.DetachedAt), Pod: before.Pod, Moves: true}
	row := VolumeRow{Volume: name, Verdict: Ignore}
	until, over := r.expiry(s.DetachedAt, r.p.Volumes.ReattachTimeout)
	switch {
	case !r.in.Attachments.Complete:
		row.Reason, row.Message = ReasonNotEvaluated, "nobody was asked for attachments to other Nodes"
	case use.unschedulable:
		row.Reason, row.Message = ReasonUnschedulable, "the pod that uses it next finds no Node"
	case over:
		row.Reason = ReasonNotReattached
		row.Message = "it was not attached elsewhere within " + r.p.Volumes.ReattachTimeout.String()
	default:
		row.Verdict, row.Reason, row.Until = Wait, ReasonReattaching, until
	}
	return r.rememberVolume(row, s, before)
}

// rememberVolume notes what a volume waits for, and since when.
func (r *round) rememberVolume(row VolumeRow, s, before VolumeState) VolumeRow {
	s.Reason, s.Since = row.Reason, r.now
	if before.Reason == row.Reason {
		s.Since = r.pastOrNow(before.Since)
	}
	row.Since = s.Since
	r.s.Volumes[row.Volume] = s
	return row
}

// rememberVolumes notes which volumes the pods use, for when nobody can be asked.
func (r *round) rememberVolumes() {
	for i, names := range r.vol.uses.names {
		uid := r.lookup.pods[i].UID
		if pod, ok := r.s.Pods[uid]; ok && !slices.Equal(pod.Volumes, names) {
			pod.Volumes = names
			r.s.Pods[uid] = pod
		}
	}
}

// pastOrNow returns a time that is known and not to come, or now.
func (r *round) pastOrNow(t time.Time) time.Time {
	if !recorded.Known(t, r.now) {
		return r.now
	}
	return t
}

// expiry says until when something may last, and whether that is over. A timeout of
// zero or less has no end.
func (r *round) expiry(since time.Time, timeout time.Duration) (until time.Time, over bool) {
	if timeout <= 0 {
		return time.Time{}, false
	}
	until = since.Add(timeout)
	return until, !r.now.Before(until)
}

// left says whether the drain ends although the volume is attached to the Node and was
// to be waited for.
func (v VolumeRow) left() bool {
	return v.Verdict == Ignore && (v.Reason == ReasonTimedOut || v.Reason == ReasonAbandoned || v.Reason == ReasonUnreachable)
}

// isUnique says whether a volume is called by its unique name in the status of a Node.
// The name of a PersistentVolume has no slash.
func isUnique(name string) bool { return strings.Contains(name, "/") }

func usedBy(pod *corev1.Pod) string {
	return "pod " + pod.Namespace + "/" + pod.Name + " uses it"
}

// detachError is what the driver says that could not detach a volume.
func detachError(va *storagev1.VolumeAttachment) string {
	if va.Status.DetachError == nil {
		return ""
	}
	return va.Status.DetachError.Message
}
