// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
)

// request returns the request for a pod that the drain evicts, as the reached rungs allow it.
func (v *view) request(pod *corev1.Pod) Row {
	a := v.allow
	row := Row{Action: Evict, Reason: ReasonEvict}
	terminating := !pod.DeletionTimestamp.IsZero()
	switch {
	case terminating && !shortens(pod, a):
		return v.terminating(pod)
	case a.forceDelete:
		row.Action = ForceDelete
	case a.ignoreBudgets, terminating: // budgets do not protect a terminating pod
		row.Action = Delete
	}
	if row.Action != Evict {
		row.Reason = machinist.Reason(a.forced)
	}
	if last := v.s.Responses[idOf(pod)]; !a.fresh && last.holds(row.Action, v.p.pause(), v.now) {
		return last.row()
	}
	row.Grace, row.Until = v.grace(pod, row.Action), v.now.Add(v.p.pause())
	return row
}

// shortens reports whether a request shortens the grace period of a terminating pod.
func shortens(pod *corev1.Pod, a *allowances) bool {
	if a.forceDelete {
		return !deletedWithin(pod, 0)
	}
	return a.grace > 0 && !deletedWithin(pod, seconds(a.grace))
}

// grace returns the grace period of a request in seconds. Nil means that of the pod. Without a grace period of
// zero in the policy, a deletion has at least a second, so that the kubelet confirms the end.
func (v *view) grace(pod *corev1.Pod, action Action) *int64 {
	if action == ForceDelete {
		return ptr.To(int64(0))
	}
	own := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		own = max(*pod.Spec.TerminationGracePeriodSeconds, 0)
	}
	grace, atOnce := own, false
	if v.p.Grace != nil {
		atOnce = *v.p.Grace <= 0
		grace = seconds(*v.p.Grace)
	}
	if v.allow.grace > 0 {
		grace = min(grace, seconds(v.allow.grace))
	}
	if action == Delete {
		grace = max(grace, seconds(shortestGrace))
	}
	switch {
	case atOnce:
		return ptr.To(int64(0))
	case grace == own && pod.DeletionTimestamp.IsZero():
		return nil
	default:
		return ptr.To(grace)
	}
}

// seconds returns whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(int64(d/time.Second), 1) }

// terminating returns the row of a terminating pod.
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

// leave ends all requests and waits after the end of the ladder. [GiveUp] blocks them, [Proceed]
// ignores them. Each row keeps why its pod or volume is left.
func leave(rows []Row, volumes []VolumeRow, end Escalation, last map[types.UID]response) {
	if end == "" {
		return
	}
	for i := range rows {
		row := &rows[i]
		if row.Action == Ignore {
			continue
		}
		if row.Action.IsRequest() {
			row.Reason, row.Message = ReasonAbandoned, "the drain ended before the pod was deleted"
			if r := last[row.id()]; r.Reason != "" && r.Reason != ReasonTerminating {
				row.Reason, row.Message = r.Reason, r.Message
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

// row returns the row of a pod that waits until the request may be repeated.
func (r response) row() Row {
	return Row{Action: Wait, Reason: cmp.Or(r.Reason, reasonRefused), Message: r.Message, Until: r.Until}
}
