// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/recorded"
)

// after returns a copy of the state that knows what requests came to.
func (s State) after(results []Result, p Policy, now time.Time) State {
	s.Pods, s.Answers, s.Volumes = maps.Clone(s.Pods), maps.Clone(s.Answers), maps.Clone(s.Volumes)
	s.Reached, s.UnreachableReached = slices.Clone(s.Reached), slices.Clone(s.UnreachableReached)
	cloneVolumes(s.Pods)
	for _, result := range results {
		if result.Row.UID == "" || result.Row.Verdict.strength() == 0 {
			continue // nobody was asked
		}
		if s.Answers == nil {
			s.Answers = make(map[types.UID]Answer, len(results))
		}
		s.Answers[result.Row.UID] = s.Answers[result.Row.UID].next(result, p, now)
	}
	return s
}

// cloneVolumes gives pods names of volumes of their own, all in one array.
func cloneVolumes(pods map[types.UID]PodState) {
	n := 0
	for _, pod := range pods {
		n += len(pod.Volumes)
	}
	if n == 0 {
		return
	}
	names := make([]string, 0, n)
	for uid, pod := range pods {
		from := len(names)
		names = append(names, pod.Volumes...)
		pod.Volumes = slices.Clip(names[from:])
		pods[uid] = pod
	}
}

// remember notes what each pod waits for, since when, and which pods have gone.
func (r *round) remember(rows []Row) {
	if r.s.Pods == nil {
		r.s.Pods = make(map[types.UID]PodState, len(rows))
	}
	seen := make(map[types.UID]struct{}, len(rows))
	for i := range rows {
		row := &rows[i]
		if row.UID == "" {
			continue
		}
		pod := r.s.Pods[row.UID]
		if _, twice := seen[row.UID]; !twice {
			pod = r.rememberPod(pod, row)
			r.s.Pods[row.UID], seen[row.UID] = pod, struct{}{}
		}
		row.Since = pod.Since
		if row.Verdict != Ignore && r.force.end == "" {
			row.Next, row.NextAt = r.nextFor(r.lookup.pods[i])
		}
	}
	maps.DeleteFunc(r.s.Answers, func(uid types.UID, _ Answer) bool {
		_, left := seen[uid]
		return !left
	})
	maps.DeleteFunc(r.s.Pods, func(uid types.UID, pod PodState) bool {
		_, left := seen[uid]
		if !left && pod.Waited {
			r.s.Gone++
		}
		return !left
	})
}

// rememberPod returns what is to be remembered of one pod.
func (r *round) rememberPod(pod PodState, row *Row) PodState {
	if pod.Reason != row.Reason || !recorded.Known(pod.Since, r.now) {
		pod.Reason, pod.Since = row.Reason, r.now
	}
	if pod.Waited && row.Reason == ReasonFinished {
		r.s.Gone++ // as good as gone
	}
	pod.Waited = row.Verdict != Ignore
	return pod
}
