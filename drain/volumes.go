// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// volumesFound is the decision of a step about the volumes of the Node.
type volumesFound struct {
	rows  []VolumeRow
	state map[string]volumeState
	uses  *volumeUses
}

// volumesOf decides about the volumes of the Node, after the decision about its pods. The drain
// waits for an attached volume unless a pod that stays uses it. This needs no memory of evicted pods.
func volumesOf(v *view, pods []*corev1.Pod, rows []Row, before map[string]volumeState) volumesFound {
	if !v.p.Volumes.Wait {
		return volumesFound{}
	}
	known := newAttachedVolumes(v.in)
	f := volumesFound{state: make(map[string]volumeState, len(known.here)), uses: newVolumeUses(v, known, pods, rows)}
	f.rows = make([]VolumeRow, 0, len(known.here))
	for _, a := range known.here {
		row, s := attachedRow(v, a, f.uses.of(a), f.uses, before[a.name])
		f.add(row, s, before[a.name], v.now)
	}
	if v.p.Volumes.ReattachTimeout > 0 {
		f.addReattaching(v, known, before)
	}
	if len(f.rows) == 0 && !v.in.Attachments.Complete && len(v.in.Node.Status.VolumesAttached) == 0 {
		f.rows = append(f.rows, VolumeRow{Action: Ignore, Reason: reasonNotEvaluated, Message: "the attachments of the Node are not known"})
	}
	return f
}

// add adds the row of a volume, and when its reason began.
func (f *volumesFound) add(row VolumeRow, s, before volumeState, now time.Time) {
	s.Reason, s.Since = row.Reason, now
	if before.Reason == row.Reason {
		s.Since = pastOrNow(before.Since, now)
	}
	row.Since = s.Since
	f.state[row.Volume] = s
	f.rows = append(f.rows, row)
}

// attachedRow decides about a volume that is attached to the Node.
func attachedRow(v *view, a attachedVolume, use volumeUse, uses *volumeUses, before volumeState) (VolumeRow, volumeState) {
	row := VolumeRow{Volume: a.name, Action: Ignore}
	if a.attachment != nil {
		row.Attachment = a.attachment.Name
	}
	switch {
	case use.stays != nil:
		row.Reason, row.Message = reasonStays, "pod "+podName(use.stays)+" stays and uses it"
	case use.abandoned != nil:
		row.Reason, row.Message = ReasonAbandoned, "pod "+podName(use.abandoned)+" uses it"
	case v.in.Reachability.Unreachable:
		row.Reason, row.Message = ReasonAbandoned, "the kubelet of the Node does not answer, and does not unmount it"
		return row, volumeState{Pod: before.Pod, Moves: before.Moves}
	case use.evicted != nil:
		row.Action, row.Reason, row.Message = Wait, reasonInUse, "pod "+podName(use.evicted)+" uses it"
		return row, volumeState{Pod: use.evicted.UID, Moves: use.moves}
	default:
		return freeRow(v, a, row, uses, before)
	}
	return row, volumeState{}
}

// freeRow returns the row of an attached volume that no known pod on the Node uses. It waits for
// at most the DetachTimeout.
func freeRow(v *view, a attachedVolume, row VolumeRow, uses *volumeUses, before volumeState) (VolumeRow, volumeState) {
	s := volumeState{FreeAt: pastOrNow(before.FreeAt, v.now), Pod: before.Pod, Moves: before.Moves}
	until, over := expiry(s.FreeAt, v.p.Volumes.DetachTimeout, v.now)
	if over {
		s.Done = true
		row.Reason, row.Message = ReasonAbandoned, "it is still attached after "+v.p.Volumes.DetachTimeout.String()
		return row, s
	}
	row.Action, row.Reason, row.Until = Wait, reasonDetaching, until
	if a.attachment != nil && a.attachment.Status.DetachError != nil {
		row.Message = a.attachment.Status.DetachError.Message
	}
	if pod := uses.unclear.stays; pod != nil {
		row.Reason = reasonNotEvaluated
		row.Message = "pod " + podName(pod) + " stays and may use it: its claims are not known"
	}
	return row, s
}

// addReattaching decides about volumes that are detached from the Node, and that their pods will
// use on other Nodes.
func (f *volumesFound) addReattaching(v *view, known *attachedVolumes, before map[string]volumeState) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		s, id := before[name], known.idOf(name)
		if _, here := f.state[name]; here || !s.Moves || s.Done || known.isHere(id) {
			continue
		}
		use := f.uses.byID[id]
		switch {
		case use.evicted != nil: // decided when that pod is gone
			f.state[name] = s
		case use.stays == nil && !known.isElsewhere(name, id, v.in.Volumes.Complete):
			row, next := reattachingRow(v, name, s)
			f.add(row, next, s, v.now)
		}
	}
}

// reattachingRow returns the row of a volume that will be attached to another Node. It waits for at
// most the ReattachTimeout, and not while the attachments are unknown.
func reattachingRow(v *view, name string, before volumeState) (VolumeRow, volumeState) {
	s := volumeState{DetachedAt: pastOrNow(before.DetachedAt, v.now), Pod: before.Pod, Moves: true}
	row := VolumeRow{Volume: name, Action: Ignore, Reason: reasonReattaching}
	timeout := v.p.Volumes.ReattachTimeout
	until, over := expiry(s.DetachedAt, timeout, v.now)
	switch {
	case !v.in.Attachments.Complete:
		row.Reason, row.Message = reasonNotEvaluated, "the attachments to other Nodes are not known"
	case over:
		row.Message = "it was not attached to another Node within " + timeout.String()
	default:
		row.Action, row.Until = Wait, machinist.Earliest(until, v.now.Add(retryEvery)) // the Node has no event of it
	}
	return row, s
}

// room returns how many more pods with attached volumes may be evicted: one at a time if the policy
// waits until volumes are attached to other Nodes. Deletions and drains of unreachable Nodes do not
// wait for that.
func (f *volumesFound) room(v *view, pods []*corev1.Pod, rows []Row) int {
	if f.uses == nil || v.p.Volumes.ReattachTimeout <= 0 || v.allow.ignoreBudgets || v.in.Reachability.Unreachable {
		return len(rows)
	}
	busy := map[types.UID]struct{}{}
	for i, attached := range f.uses.attached {
		last := v.s.Responses[pods[i].UID]
		terminating := !pods[i].DeletionTimestamp.IsZero() || last.Reason == ReasonTerminating && rows[i].Action == Wait && last.Until.After(v.now)
		if attached && terminating && rows[i].Action != Ignore {
			busy[pods[i].UID] = struct{}{}
		}
	}
	for _, row := range f.rows {
		s := f.state[row.Volume]
		if moving := !s.FreeAt.IsZero() || !s.DetachedAt.IsZero(); moving && row.Action == Wait && s.Pod != "" {
			busy[s.Pod] = struct{}{}
		}
	}
	return max(0, 1-len(busy))
}

// oneByOne holds the requests for pods with attached volumes that have no room. Pods of a higher
// priority are evicted first.
func (f *volumesFound) oneByOne(room int, pods []*corev1.Pod, rows []Row) {
	var requests []int
	if f.uses == nil {
		return
	}
	for i, attached := range f.uses.attached {
		if attached && rows[i].Action.IsRequest() && pods[i].DeletionTimestamp.IsZero() {
			requests = append(requests, i)
		}
	}
	slices.SortStableFunc(requests, func(a, b int) int { return cmp.Compare(rows[b].Priority, rows[a].Priority) })
	for _, i := range requests[min(room, len(requests)):] {
		rows[i].wait(reasonWave, "pods with volumes are evicted one at a time", time.Time{})
	}
}

// pastOrNow returns t, or now if t is zero or in the future.
func pastOrNow(t, now time.Time) time.Time {
	if !recorded.Known(t, now) {
		return now
	}
	return t
}

// expiry returns the end of a timeout, and whether it has passed. A timeout of zero or less has no
// end.
func expiry(since time.Time, timeout time.Duration, now time.Time) (until time.Time, over bool) {
	if timeout <= 0 {
		return time.Time{}, false
	}
	until = since.Add(timeout)
	return until, !now.Before(until)
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
