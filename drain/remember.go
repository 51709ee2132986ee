// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// after returns a copy of the state that knows what requests came to.
func (s State) after(results []Result, p Policy, now time.Time) State {
	s.Pods, s.Volumes = maps.Clone(s.Pods), maps.Clone(s.Volumes)
	s.Reached, s.UnreachableReached = slices.Clone(s.Reached), slices.Clone(s.UnreachableReached)
	for _, result := range results {
		if s.Pods == nil {
			s.Pods = make(map[types.UID]PodState, len(results))
		}
		pod := s.Pods[result.Row.UID]
		pod.Answer = answer(result, p, now)
		s.Pods[result.Row.UID] = pod
	}
	return s
}

// remember notes what each pod and volume waits for, since when, and which pods
// have gone.
func (r *round) remember(rows []Row, _ []VolumeRow) {
	before := r.s.Pods
	next := make(map[types.UID]PodState, len(rows))
	for i := range rows {
		row := &rows[i]
		if row.UID == "" {
			continue
		}
		pod := before[row.UID]
		if pod.Reason != row.Reason || pod.Since.IsZero() || pod.Since.After(r.now) {
			pod.Reason, pod.Since = row.Reason, r.now
		}
		pod.Waited = row.Verdict != Ignore
		row.Since = pod.Since
		next[row.UID] = pod
	}
	for uid, pod := range before {
		if _, left := next[uid]; !left && pod.Waited {
			r.s.Gone++
		}
	}
	r.s.Pods = next
}
