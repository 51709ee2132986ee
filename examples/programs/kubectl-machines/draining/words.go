// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

// words prints decisions for people, at a time and in a time zone.
type words struct {
	now  time.Time
	zone *time.Location
}

// clock returns the time of day, with the date if it is not that of now.
func (w words) clock(t time.Time) string {
	t, now := t.In(w.zone), w.now.In(w.zone)
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("15:04:05")
}

// row returns what one pod waits for, in one line: the pod, why, since when, and what is next.
func (w words) row(r drain.Row) string {
	return w.line(r.Namespace+"/"+r.Name, w.why(r), r.Since, w.next(r))
}

// line returns a wait in one line. A zero time is left out.
func (w words) line(subject, why string, since time.Time, next string) string {
	s := subject + ": " + why
	if !since.IsZero() {
		s += "; since " + w.clock(since)
	}
	return s + "; next: " + next
}

// why returns the reason of a row, with its PodDisruptionBudgets.
func (w words) why(r drain.Row) string { return reasonOf(r.Reason, w.message(r)) }

// message returns the message of a row, with its PodDisruptionBudgets.
func (w words) message(r drain.Row) string {
	var said []string
	if r.Message != "" {
		said = append(said, r.Message)
	}
	for _, b := range r.Budgets {
		if !strings.Contains(r.Message, b.Namespace+"/"+b.Name) {
			said = append(said, b.String())
		}
	}
	return strings.Join(said, "; ")
}

// next returns what happens next with a pod.
func (w words) next(r drain.Row) string {
	var next []string
	switch {
	case r.Action == drain.Evict, r.Action == drain.Delete, r.Action == drain.ForceDelete:
		next = append(next, "requested now")
	case r.Action == drain.Block && !r.Until.IsZero():
		next = append(next, "checked again at "+w.clock(r.Until))
	case r.Action == drain.Block:
		next = append(next, cmp.Or(remedies[r.Reason], "nothing until an object changes"))
	case r.Reason == drain.ReasonTerminating, r.Reason == drain.ReasonOverdue, r.Reason == drain.ReasonWaitCompleted:
		next = append(next, "waits until it is gone")
	case len(r.Budgets) > 0:
		next = append(next, "evicted as soon as the budget allows it")
	default:
		next = append(next, w.again(r.Until))
	}
	if escalation := w.escalation(r.Next, r.NextAt); escalation != "" {
		next = append(next, escalation)
	}
	return strings.Join(next, ", ")
}

// escalation returns the next rung and its time.
func (w words) escalation(e drain.Escalation, at time.Time) string {
	if e == "" {
		return ""
	}
	return fmt.Sprintf("%s at %s", cmp.Or(happens[e], string(e)), w.clock(at))
}

// happens is what an escalation does with a pod.
var happens = map[drain.Escalation]string{drain.IgnoreBudgets: "deleted", drain.ForceDeletePods: "force-deleted", drain.GiveUp: "given up"}

// remedies are the flags for reasons.
var remedies = map[machinist.Reason]string{
	drain.ReasonUnmanaged:    "--force evicts it",
	drain.ReasonLocalStorage: "--delete-emptydir-data evicts it",
	drain.ReasonDoNotDisrupt: "--honor-do-not-disrupt=false evicts it",
	drain.ReasonBudgetNever:  "change the PodDisruptionBudget, or delete the pod with --force-after",
	drain.ReasonBudgets:      "change the PodDisruptionBudget, or delete the pod with --force-after",
}

// hold returns a hold in one line.
func (w words) hold(h machinist.Hold) string {
	return w.line(h.Subject, reasonOf(h.Reason, h.Message), h.Since, w.again(h.Until))
}

// again returns when a hold is checked again.
func (w words) again(until time.Time) string {
	if until.IsZero() {
		return "checked again when an object changes"
	}
	return "checked again at " + w.clock(until) + " or when an object changes"
}

func reasonOf(reason machinist.Reason, message string) string {
	if message == "" {
		return string(reason)
	}
	return string(reason) + ": " + message
}

// waits returns a line for everything that the drain waits for.
func (w words) waits(plan drain.Decision) []string {
	var lines []string
	rows := map[string]drain.Row{}
	for _, r := range plan.Rows {
		rows["pod/"+r.Namespace+"/"+r.Name] = r
	}
	for _, h := range plan.Holds() {
		if r, ok := rows[h.Subject]; ok {
			lines = append(lines, w.row(r))
			continue
		}
		lines = append(lines, w.hold(h))
	}
	return lines
}
