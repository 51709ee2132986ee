// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// request returns what is asked for a pod that is to go, under what is allowed.
func (v *view) request(pod *corev1.Pod) Row {
	a := v.allow
	row := Row{Action: Evict, Reason: ReasonEvict}
	leaving := !pod.DeletionTimestamp.IsZero()
	switch {
	case leaving && !shortens(pod, a):
		return v.terminating(pod)
	case a.forceDelete:
		row.Action = ForceDelete
	case a.ignoreBudgets, leaving: // budgets do not protect a pod that is terminating
		row.Action = Delete
	}
	if row.Action != Evict {
		row.Reason = machinist.Reason(a.forced)
	}
	if last := v.s.Responses[pod.UID]; !a.fresh && last.holds(row.Action, v.now) {
		return last.row()
	}
	row.Grace, row.Until = v.grace(pod, row.Action), v.now.Add(retryEvery)
	return row
}

// shortens reports whether a pod that is terminating is to stop earlier.
func shortens(pod *corev1.Pod, a *allowances) bool {
	if a.forceDelete {
		return !deletedWithin(pod, 0)
	}
	return a.grace > 0 && !deletedWithin(pod, seconds(a.grace))
}

// grace returns how many seconds a request gives a pod, or nil for its own. It is
// never more than its own, and nothing is deleted with less than a second, so that
// the kubelet still says when it has stopped.
func (v *view) grace(pod *corev1.Pod, action Action) *int64 {
	if action == ForceDelete {
		return new(int64(0))
	}
	own := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		own = max(*pod.Spec.TerminationGracePeriodSeconds, 0)
	}
	grace := own
	for _, limit := range []time.Duration{v.p.MaxGrace, v.allow.grace} {
		if limit > 0 {
			grace = min(grace, seconds(limit))
		}
	}
	if action == Delete {
		grace = max(grace, seconds(shortestGrace))
	}
	if grace == own && pod.DeletionTimestamp.IsZero() {
		return nil
	}
	return new(grace)
}

// seconds returns whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(int64(d/time.Second), 1) }

// terminating waits for a pod that was told to stop.
func (v *view) terminating(pod *corev1.Pod) Row {
	end := pod.DeletionTimestamp.Time
	if end.After(v.now) {
		return Row{Action: Wait, Reason: ReasonTerminating, Until: end}
	}
	message := "it should have stopped by " + formatTime(end)
	if len(pod.Finalizers) > 0 {
		message += " and has the finalizers " + strings.Join(pod.Finalizers, ", ")
	}
	if !v.s.UnreachableSince.IsZero() {
		message += "; the kubelet of the Node does not answer"
	}
	return Row{Action: Wait, Reason: ReasonOverdue, Message: message, Until: v.now.Add(lookAgain)}
}

// leave ends what is left of a drain whose ladder has ended: the pods and volumes are given up,
// or left behind, each with why it is still there.
func leave(rows []Row, volumes []VolumeRow, end Escalation, answers map[types.UID]response) {
	if end == "" {
		return
	}
	for i := range rows {
		row := &rows[i]
		if row.Action == Ignore {
			continue
		}
		if row.Action.IsRequest() {
			row.Reason, row.Message = ReasonAbandoned, "it was not asked to go any more"
			if last := answers[row.UID]; last.Reason != "" && last.Reason != ReasonTerminating {
				row.Reason, row.Message = last.Reason, last.Message
			}
		}
		row.Action, row.Grace, row.Until = Block, nil, time.Time{}
		if end == Proceed {
			row.Action, row.Reason, row.Message = Ignore, ReasonAbandoned, withReason(row.Reason, row.Message)
		}
	}
	if end != Proceed {
		return
	}
	for i := range volumes {
		if v := &volumes[i]; v.Action != Ignore {
			v.Action, v.Reason, v.Message, v.Until = Ignore, ReasonAbandoned, withReason(v.Reason, v.Message), time.Time{}
		}
	}
}

// withReason joins a reason and its message.
func withReason(reason machinist.Reason, message string) string {
	return strings.TrimSuffix(string(reason)+": "+message, ": ")
}

// row waits until the request may be repeated.
func (a response) row() Row {
	return Row{Action: Wait, Reason: cmp.Or(a.Reason, reasonRefused), Message: a.Message, Until: a.Until}
}
