// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// limitVolumes holds the requests for pods with attached volumes beyond the limit of the
// policy. Pods of a higher priority go first. A pod that something else holds takes up
// no room.
func (r *round) limitVolumes(rows []Row) {
	if !r.limitsVolumes() {
		return
	}
	slots := r.volumeSlots(rows)
	asked := r.askedWithVolumes(rows)
	if len(asked) <= max(slots, 0) {
		return
	}
	slices.SortStableFunc(asked, func(a, b int) int { return cmp.Compare(rows[b].Priority, rows[a].Priority) })
	limit := r.p.Volumes.AtOnce
	for _, i := range asked[max(slots, 0):] {
		row := &rows[i]
		row.Verdict, row.Reason, row.Grace, row.Until = Wait, ReasonVolumeLimit, nil, time.Time{}
		row.Message = fmt.Sprintf("as many pods with volumes are on their way as may be at once: %d", limit)
	}
}

// limitsVolumes says whether there is a limit. Force does not wait for it, and where
// nobody stops pods it would only hold what is asked in vain.
func (r *round) limitsVolumes() bool {
	return r.p.Volumes.AtOnce > 0 && !r.force.ignoreBudgets && r.in.Reachability.State != Unreachable
}

// volumeSlots returns how many more pods with volumes may be asked to go.
func (r *round) volumeSlots(rows []Row) int {
	slots := r.p.Volumes.AtOnce
	for i, attached := range r.vol.uses.attached {
		if attached && r.onItsWay(r.lookup.pods[i], &rows[i]) {
			slots--
		}
	}
	moving := map[types.UID]struct{}{}
	for _, s := range r.s.Volumes {
		if s.Pod != "" && (s.Reason == ReasonDetaching || s.Reason == ReasonReattaching || s.Reason == ReasonNotEvaluated && !s.FreeAt.IsZero()) {
			moving[s.Pod] = struct{}{}
		}
	}
	return slots - len(moving)
}

// onItsWay says whether a pod was told to go and has not gone yet.
func (r *round) onItsWay(pod *corev1.Pod, row *Row) bool {
	if row.Verdict == Ignore {
		return false
	}
	last := r.s.Answers[pod.UID]
	return !pod.DeletionTimestamp.IsZero() || last.Reason == ReasonTerminating && row.Verdict == Wait && last.Until.After(r.now)
}

// askedWithVolumes returns the rows that ask a pod with attached volumes to go, which
// nobody did before.
func (r *round) askedWithVolumes(rows []Row) []int {
	var asked []int
	for i, attached := range r.vol.uses.attached {
		if attached && rows[i].Verdict.strength() > 0 && r.lookup.pods[i].DeletionTimestamp.IsZero() {
			asked = append(asked, i)
		}
	}
	return asked
}
