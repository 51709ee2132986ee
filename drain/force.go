// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
)

// defaultGrace is the grace, in seconds, of a pod that says nothing.
const defaultGrace = int64(corev1.DefaultTerminationGracePeriodSeconds)

// request returns what is asked for a pod that is to go, under what is allowed.
func (r *round) request(pod *corev1.Pod) Row {
	a := r.leewayFor(pod)
	row := Row{Verdict: Evict, Reason: ReasonEvict}
	leaving := !pod.DeletionTimestamp.IsZero()
	switch {
	case leaving && !r.shortens(pod, a):
		return r.terminating(pod, a)
	case a.forceDelete:
		row.Verdict, row.Reason = ForceDelete, ReasonForced
	case a.ignoreBudgets, leaving: // budgets do not protect what is on its way out
		row.Verdict, row.Reason = Delete, ReasonForced
	}
	if a.ignoreBudgets && !r.s.UnreachableSince.IsZero() {
		row.Reason = ReasonUnreachable
	}
	if last := r.s.Answers[pod.UID]; !r.force.fresh && last.holds(row.Verdict, r.p, r.now) {
		return last.row()
	}
	row.Grace = r.graceOf(pod, row.Verdict, a)
	row.Until = r.now.Add(r.p.retryEvery())
	return row
}

// shortens says whether a pod that is on its way out is to stop earlier.
func (r *round) shortens(pod *corev1.Pod, a leeway) bool {
	switch {
	case a.forceDelete:
		return !deletedWithin(pod, 0)
	case a.grace > 0 && !deletedWithin(pod, seconds(a.grace)):
		return true
	default:
		return !a.due.IsZero() && pod.DeletionTimestamp.After(a.due) && !deletedWithin(pod, seconds(r.longest(a)))
	}
}

// graceOf returns how many seconds a request gives a pod, or nil for its own. It is
// never more than its own, and nothing is deleted with less than a second, so that
// the kubelet still says when it has stopped.
func (r *round) graceOf(pod *corev1.Pod, v Verdict, a leeway) *int64 {
	if v == ForceDelete {
		return new(int64(0))
	}
	own := ownSeconds(pod)
	grace := own
	if limit := r.longest(a); limit > 0 {
		grace = min(grace, seconds(limit))
	}
	if v == Delete {
		grace = max(grace, seconds(shortestGrace))
	}
	if grace == own && pod.DeletionTimestamp.IsZero() {
		return nil
	}
	return new(grace)
}

// longest returns the longest grace that is allowed, or zero for any.
func (r *round) longest(a leeway) time.Duration {
	limit := r.graceCap(a.grace)
	if a.due.IsZero() {
		return limit
	}
	left := max(a.due.Sub(r.now), shortestGrace)
	if limit == 0 {
		return left
	}
	return min(limit, left)
}

// graceCap returns the longest grace by the policy and the rungs, or zero for any.
func (r *round) graceCap(rungs time.Duration) time.Duration {
	if r.p.MaxGrace <= 0 {
		return rungs
	}
	limit := max(r.p.MaxGrace, shortestGrace)
	if rungs > 0 {
		limit = min(limit, rungs)
	}
	return limit
}

// ownGrace returns how long a pod may take to stop, by its own word and the caps of
// the policy and the rungs.
func (r *round) ownGrace(pod *corev1.Pod) time.Duration {
	grace := max(time.Duration(min(ownSeconds(pod), math.MaxInt32))*time.Second, shortestGrace)
	if limit := r.graceCap(r.force.grace); limit > 0 {
		grace = min(grace, limit)
	}
	return grace
}

// ownSeconds returns the grace that a pod asks for.
func ownSeconds(pod *corev1.Pod) int64 {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return defaultGrace
	}
	return max(*pod.Spec.TerminationGracePeriodSeconds, 0)
}

// seconds returns whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(int64(d/time.Second), 1) }

// terminating waits for a pod that is on its way out.
func (r *round) terminating(pod *corev1.Pod, a leeway) Row {
	end := pod.DeletionTimestamp.Time
	skip := end.Add(shortestGrace)
	row := Row{Verdict: Wait, Reason: ReasonTerminating, Until: end}
	if end.After(r.now) {
		return row
	}
	row.Reason, row.Message, row.Until = ReasonOverdue, overdue(pod), r.now.Add(lookAgain)
	if !r.s.UnreachableSince.IsZero() {
		row.Reason, row.Message = ReasonUnreachable, row.Message+"; nobody on the Node says whether it has"
	}
	switch {
	case !a.skipTerminating:
	case skip.After(r.now):
		row.Until = skip
	default:
		return Row{Verdict: Ignore, Reason: ReasonAbandoned, Message: row.Message}
	}
	return row
}

// leave ends what is left of a drain whose ladder has ended: what was to go is given
// up, or left behind, each with why it is still there.
func (r *round) leave(rows []Row) {
	if r.force.end == "" {
		return
	}
	for i := range rows {
		row := &rows[i]
		if row.Verdict == Ignore {
			continue
		}
		if row.Verdict.strength() > 0 {
			r.refused(row)
		}
		row.Verdict, row.Grace, row.Until = Block, nil, time.Time{}
		if r.force.end == Proceed {
			row.Message = withReason(row.Reason, row.Message)
			row.Verdict, row.Reason = Ignore, ReasonAbandoned
		}
	}
}

// refused gives a request that is not made any more the reason of its last refusal.
func (r *round) refused(row *Row) {
	last := r.s.Answers[row.UID]
	row.Reason, row.Message = ReasonGaveUp, "it was not asked to go any more"
	if last.Reason != "" && last.Reason != ReasonTerminating {
		row.Reason, row.Message = last.Reason, last.Message
	}
}

// leaveVolumes stops waiting for volumes when the ladder says to go on.
func (r *round) leaveVolumes(volumes []VolumeRow) {
	if r.force.end != Proceed {
		return
	}
	for i := range volumes {
		if v := &volumes[i]; v.Verdict != Ignore {
			v.Message = withReason(v.Reason, v.Message)
			v.Verdict, v.Reason, v.Until = Ignore, ReasonAbandoned, time.Time{}
		}
	}
}

// withReason joins a reason and its message.
func withReason(reason machinist.Reason, message string) string {
	if message == "" {
		return string(reason)
	}
	return string(reason) + ": " + message
}
