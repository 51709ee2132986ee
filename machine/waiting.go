// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/reasons"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// quiet are the reasons of holds that are part of the usual life of a machine, end by themselves, or are
// those of the whole cluster. They cause no write, but each other write of the status has them.
var quiet = []machinist.Reason{
	ReasonNotObserved, ReasonFrozen, reasonTargetUnreachable, reasonWaitingForNode, reasonVMNotSettled, reasonNodeUnhealthy, reasonNodeGone, reasonFailed, reasonPreserved,
	reasonInPlaceUpdate, reasonCriticalComponents, reasonClassNew,
}

func isQuiet(r machinist.Reason) bool { return slices.Contains(quiet, r) }

// ReportFrom returns from when a hold is reported, for [machinist.Waits]: when it is stuck. Zero means
// never: an Event of [Events] reports the hold as soon as it lasts.
func (Decision) ReportFrom(_ *v1alpha1.Machine, h machinist.Hold, _ time.Time) time.Time {
	if !isQuiet(h.Reason) {
		return time.Time{}
	}
	return h.StuckFrom()
}

// withWaiting adds to a decision that the status says what the machine waits for. A decision that writes
// the status anyway writes that, too, as it is after the write. Otherwise it is written when the hold lasts:
// see [machinist.Hold.LastsFrom]. It is removed when the hold has ended. How [logic.drain] reports its holds
// is its own matter.
func (l *logic) withWaiting(d Decision) Decision {
	if m := statusOf(d.Action); m != nil {
		after := *l
		after.m, after.in.Machine = m, m
		next := after.decide()
		h, waits := next.first()
		l.say(&m.Status, h, waits && next.Action == nil, next.Reason == reasonDraining)
		return d
	}
	have := facts.ConditionOf(l.m.Status.Conditions, v1alpha1.MachineWaiting)
	if _, calls := d.Action.(CallDriver); calls && have != nil && isBlocking(machinist.Reason(have.Reason)) {
		return l.recordWait(d.Reason, d.Message, machinist.Hold{}, false) // the drain has ended, and the call may take long
	}
	h, waits := d.first()
	switch loud := waits && !isQuiet(h.Reason); {
	case d.Action != nil, d.Reason == reasonDraining:
		return d
	case !loud && (have == nil || isQuiet(machinist.Reason(have.Reason))):
		return d
	case !loud:
		return l.recordWait(d.Reason, d.Message, h, waits)
	case l.says(have, h):
		return d
	}
	h.Since = l.waitsSince(h)
	if due := h.LastsFrom(); l.now.Before(due) {
		return d.by(due)
	}
	return l.recordWait(h.Reason, h.String(), h, true)
}

// recordWait returns a decision that writes what the machine waits for, or that it does not wait.
func (l *logic) recordWait(why machinist.Reason, message string, h machinist.Hold, waits bool) Decision {
	return l.record(why, message, func(s *v1alpha1.MachineStatus) { l.say(s, h, waits, false) })
}

// first returns the hold that explains the decision best: the first that does not end by itself, or the
// first. It returns false without holds.
func (d Decision) first() (machinist.Hold, bool) {
	if len(d.Holds) == 0 {
		return machinist.Hold{}, false
	}
	loud := func(h machinist.Hold) bool { return !isQuiet(h.Reason) }
	if d.Reason == reasonDraining {
		loud = blocks
	}
	if i := slices.IndexFunc(d.Holds, loud); i >= 0 {
		return d.Holds[i], true
	}
	return d.Holds[0], true
}

// say changes a status so that it says what the machine waits for, or that it does not wait. The text of
// the last operation is that of a drain, or says the same with the time of the next attempt.
func (l *logic) say(s *v1alpha1.MachineStatus, h machinist.Hold, waits, drains bool) {
	if !drains {
		s.LastOperation.Description = facts.WithoutWaits(s.LastOperation.Description)
	}
	if !waits {
		s.Conditions = facts.WithCondition(s.Conditions, v1alpha1.MachineWaiting, nil)
		return
	}
	c := l.waitingCondition(h)
	s.Conditions = facts.WithCondition(s.Conditions, v1alpha1.MachineWaiting, &c)
	if !drains && !isQuiet(h.Reason) && s.LastOperation.Type != "" { // without a type, no VM was requested
		s.LastOperation.Description += l.waitText(s.LastOperation.Description, h)
	}
}

// says reports whether the status says that the machine waits for a hold. Numbers that change while it
// waits for the same are those of the first time, because many machines may wait for the same. The time of
// the next attempt to call the provider has to be the newest.
func (l *logic) says(c *corev1.NodeCondition, h machinist.Hold) bool {
	want, op := l.waitingCondition(h), l.m.Status.LastOperation
	text := facts.WithoutWaits(op.Description)
	switch {
	case !facts.SameState(c, &want):
		return false
	case op.Type == "":
		return true
	case h.Reason == reasonProviderFailed:
		return op.Description == text+l.waitText(text, h)
	default:
		return op.Description != text
	}
}

// waitEvent returns the Event for a status that says of a new hold what the machine waits for, and false if
// it says of none. Its text has no times, so that repeated Events are counted as one.
func waitEvent(before, after *v1alpha1.Machine) (machinist.Event, bool) {
	c := facts.ConditionOf(after.Status.Conditions, v1alpha1.MachineWaiting)
	_, text, says := strings.Cut(facts.WithoutDetails(after.Status.LastOperation.Description), facts.WaitsMark)
	drains := strings.HasPrefix(after.Status.LastOperation.Description, v1alpha1.InitiateDrain)
	if c == nil || !says || isQuiet(machinist.Reason(c.Reason)) || drains && !isBlocking(machinist.Reason(c.Reason)) {
		return machinist.Event{}, false
	}
	if before != nil && before.UID == after.UID && facts.SameState(facts.ConditionOf(before.Status.Conditions, v1alpha1.MachineWaiting), c) {
		return machinist.Event{}, false
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: machinist.Reason(c.Reason), Message: facts.Shorten("Waits for " + text)}, true
}

// waitingCondition returns the condition Waiting for a hold.
func (l *logic) waitingCondition(h machinist.Hold) corev1.NodeCondition {
	c := facts.Condition(v1alpha1.MachineWaiting, corev1.ConditionTrue, string(h.Reason), l.waitingText(h), l.now)
	c.LastTransitionTime.Time = l.waitsSince(h)
	return c
}

// waitingText returns the reason of a hold with the object that is waited for, or with the code of the
// provider.
func (l *logic) waitingText(h machinist.Hold) string {
	if f := l.in.VM.Failure; h.Reason == reasonProviderFailed && f.Code != codes.OK {
		return fmt.Sprintf("%s %s", h.Reason, f.Code)
	}
	return fmt.Sprintf("%s %s", h.Reason, h.Subject)
}

// waitsSince returns since when the machine waits for a hold: as recorded, as the hold says, or as the
// caller remembers. What is recorded comes first, because a new process begins to count anew.
func (l *logic) waitsSince(h machinist.Hold) time.Time {
	known := func(t time.Time) bool { return !t.IsZero() && !t.After(l.now) }
	have := facts.ConditionOf(l.m.Status.Conditions, v1alpha1.MachineWaiting)
	if have != nil && have.Message == l.waitingText(h) && known(have.LastTransitionTime.Time) {
		return have.LastTransitionTime.Time
	}
	if known(h.Since) {
		return h.Since
	}
	for _, w := range l.in.Waits {
		if w.Subject == h.Subject && w.Reason == h.Reason && known(w.Since) {
			return w.Since
		}
	}
	return l.now
}

// waitText returns what is added to the text of a last operation for a hold.
func (l *logic) waitText(text string, h machinist.Hold) string {
	what := h.String()
	if h.Message != "" && strings.Contains(text, facts.WithoutMark(h.Message)) { // the text has the reason
		what = h.Subject
	}
	return facts.WaitsMark + facts.WithoutMark(what) + l.waitDetails(h)
}

// waitDetails returns since when a hold lasts, when the provider is called again, and what helps.
func (l *logic) waitDetails(h machinist.Hold) string {
	details := []string{l.waitsSince(h).UTC().Format(time.RFC3339)}
	switch f := l.in.VM.Failure; {
	case h.Reason != reasonProviderFailed || h.Until.IsZero():
	case shared(f.Operation, f.Code): // may last for days
		details = append(details, fmt.Sprintf("tried again when the class or its Secret changes, and every %s", l.p.Backoff.Pace(f.Code.Category()).Cap))
	default:
		details = append(details, "next attempt at "+h.Until.UTC().Format(time.RFC3339))
	}
	if helps := reasons.Helps(h.Reason, "machine", "drain", "safety"); helps != "" {
		details = append(details, strings.ToLower(helps[:1])+strings.TrimSuffix(helps[1:], "."))
	}
	return facts.WaitsDetails + strings.Join(details, "; ") + ")"
}
