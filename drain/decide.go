// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Decide plans one round of a drain. The observation is not changed, and the
// plan shares nothing with it.
func Decide(in Observation, p Policy, now time.Time) Plan {
	again := now.Add(p.retryEvery())
	if !in.Looked || !in.PodsComplete || in.Node != nil && in.Node.Name == "" {
		return Plan{Reason: ReasonNotObserved, NextCheck: again}
	}
	var plan Plan
	if in.Node != nil && !in.Node.Spec.Unschedulable && !p.KeepSchedulable {
		plan.Cordon, plan.CordonUID, plan.NextCheck = in.Node.Name, in.Node.UID, again
	}
	plan.Rows = decidePods(in, p, now)
	plan.Done = plan.Cordon == "" || p.forced(now)
	for _, row := range plan.Rows {
		if row.Verdict != Ignore {
			plan.Done = false
			plan.NextCheck = earliest(plan.NextCheck, row.Until)
		}
	}
	if !plan.Done && !p.forced(now) {
		plan.NextCheck = earliest(plan.NextCheck, p.ForceAt)
	}
	return plan
}

// decidePods decides about each pod once, in order. Of several copies of a pod the
// newest counts, and of those the one that is treated with the most caution.
func decidePods(in Observation, p Policy, now time.Time) []Row {
	pods := slices.DeleteFunc(slices.Clone(in.Pods), func(pod *corev1.Pod) bool { return pod == nil })
	slices.SortFunc(pods, comparePods)
	var rows []Row
	if len(pods) > 0 {
		rows = make([]Row, 0, len(pods))
	}
	for i, pod := range pods {
		row := decidePod(pod, in, p, now)
		row.Namespace, row.Name, row.UID = pod.Namespace, pod.Name, pod.UID
		last := len(rows) - 1
		switch {
		case last < 0 || !samePod(rows[last], row):
			rows = append(rows, row)
		case pod.ResourceVersion != pods[i-1].ResourceVersion:
			pods[i] = pods[i-1] // superseded, like all that follow
		case compareRows(row, rows[last]) < 0:
			rows[last] = row
		}
	}
	return rows
}

// decidePod decides about one pod.
func decidePod(pod *corev1.Pod, in Observation, p Policy, now time.Time) Row {
	if row, untouched := untouched(pod, in.Node, p); untouched {
		return row
	}
	last := in.Answers[pod.UID]
	switch {
	case p.forced(now):
		return force(pod, last, p, now)
	case !pod.DeletionTimestamp.IsZero():
		return terminating(pod, p, now)
	case last.holds(Evict, p, now):
		return last.row()
	default:
		return Row{Verdict: Evict, Reason: ReasonEvict, Until: now.Add(p.retryEvery())}
	}
}

// force asks for a pod to go without regard to budgets, until nothing more can be
// asked for, and gives it up a minute after it should have stopped. A grace that
// is shortened counts from the first request to delete, so that the end may lie
// in the past at once: neither the time of force nor the pause after our own
// request is cut short by that.
func force(pod *corev1.Pod, last Answer, p Policy, now time.Time) Row {
	row := Row{Verdict: Delete, Reason: ReasonForced, Until: now.Add(p.retryEvery())}
	if p.NodeUnreachable {
		row.Verdict, row.Reason = ForceDelete, ReasonUnreachable
	}
	switch {
	case deletedWithin(pod, graceOf(row.Verdict)):
		giveUp := latest(pod.DeletionTimestamp.Time, p.ForceAt).Add(patience)
		if last.holds(row.Verdict, p, now) {
			giveUp = latest(giveUp, last.Until)
		}
		wait := terminating(pod, p, now)
		if !giveUp.After(now) {
			return Row{Verdict: Ignore, Reason: ReasonAbandoned, Message: wait.Message}
		}
		wait.Until = earliest(wait.Until, giveUp)
		return wait
	case last.holds(row.Verdict, p, now):
		return last.row()
	default:
		return row
	}
}

// graceOf returns how many seconds a request to delete gives a pod.
func graceOf(v Verdict) int64 {
	if v == ForceDelete {
		return 0
	}
	return 1
}

// terminating waits for a pod that is on its way out.
func terminating(pod *corev1.Pod, p Policy, now time.Time) Row {
	end := pod.DeletionTimestamp.Time
	if end.After(now) {
		return Row{Verdict: Wait, Reason: ReasonTerminating, Until: end}
	}
	return Row{Verdict: Wait, Reason: ReasonOverdue, Message: overdue(pod), Until: now.Add(p.retryEvery())}
}

// earliest returns the earlier time; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// latest returns the later time.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
