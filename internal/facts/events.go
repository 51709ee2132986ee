// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Events returns the Events for the change of a machine from before to after, oldest first: a new
// phase that is not [Routine], an operation that failed for a new reason, and invalid fields. A nil
// before, or one with another UID, is a new machine. For a nil after it returns nil.
func Events(before, after *v1alpha1.Machine) []machinist.Event {
	if after == nil {
		return nil
	}
	var was v1alpha1.MachineStatus
	if before != nil && before.UID == after.UID {
		was = before.Status
	}
	var events []machinist.Event
	op := after.Status.LastOperation
	op.Description = WithoutWaits(op.Description)
	failed := op.State == v1alpha1.MachineStateFailed &&
		(was.LastOperation.State != v1alpha1.MachineStateFailed || was.LastOperation.ErrorCode != op.ErrorCode)
	if phase := after.Status.CurrentStatus.Phase; was.CurrentStatus.Phase != phase && !Routine(was.CurrentStatus.Phase, phase) {
		coded := failed && op.ErrorCode != ""
		events = append(events, phaseEvent(was.CurrentStatus.Phase, after, !coded))
		failed = coded // without a code, the Event of the phase has the operation
	}
	invalid, news := validEvent(was.Conditions, after.Status.Conditions)
	if failed && !(news && Shorten(op.Description) == invalid.Message) { // the Events would be equal
		events = append(events, failureEvent(op))
	}
	if news {
		events = append(events, invalid)
	}
	return events
}

// Routine reports whether a change of phase is part of a life without failures: the VM exists, the
// Node joins, the machine is being deleted. The status shows it, and it has no Event.
func Routine(was, phase v1alpha1.MachinePhase) bool {
	switch phase {
	case v1alpha1.MachineTerminating:
		return true
	case v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineAvailable:
		return was == "" || was == v1alpha1.MachinePending
	default:
		return false
	}
}

// validEvent returns the Event for a new condition Valid that is False. It returns false if there
// is none.
func validEvent(was, is []corev1.NodeCondition) (machinist.Event, bool) {
	c, before := ConditionOf(is, v1alpha1.MachineValid), ConditionOf(was, v1alpha1.MachineValid)
	if c == nil || c.Status != corev1.ConditionFalse || SameState(before, c) {
		return machinist.Event{}, false
	}
	return machinist.Event{Type: corev1.EventTypeWarning, Reason: word(c.Reason, "Invalid"), Message: Shorten(c.Message)}, true
}

// phaseEvent returns the Event for a new phase. With operation its message includes the last
// operation.
func phaseEvent(was v1alpha1.MachinePhase, m *v1alpha1.Machine, operation bool) machinist.Event {
	phase, kind := m.Status.CurrentStatus.Phase, corev1.EventTypeNormal
	if TraitsOf(phase).Trouble {
		kind = corev1.EventTypeWarning
	}
	message := fmt.Sprintf("Phase is %q", phase)
	if was != "" {
		message += fmt.Sprintf(", was %q", was)
	}
	switch {
	case phase == v1alpha1.MachinePending && m.Labels[v1alpha1.NodeLabelKey] != "":
		message += fmt.Sprintf(": VM %s exists, node %s has to join", m.Spec.ProviderID, m.Labels[v1alpha1.NodeLabelKey])
	case phase == v1alpha1.MachinePending, phase == v1alpha1.MachineAvailable:
		message += fmt.Sprintf(": VM %s exists", m.Spec.ProviderID)
	case operation && m.Status.LastOperation.Description != "":
		message += ": " + WithoutWaits(m.Status.LastOperation.Description)
	}
	return machinist.Event{Type: kind, Reason: word(string(phase), "PhaseChanged"), Message: Shorten(message)}
}

// failureEvent returns the Event for a failed operation.
func failureEvent(op v1alpha1.LastOperation) machinist.Event {
	reason := word(op.ErrorCode, word(string(op.Type)+"Failed", "ProviderFailed"))
	message := op.Description
	if op.Type != "" {
		message = string(op.Type) + " failed: " + op.Description
	}
	return machinist.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: Shorten(message)}
}

// eventReason is the form of a reason: a CamelCase word.
var eventReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)

// word returns s if it has the form of a reason, and otherwise the other reason.
func word(s string, otherwise machinist.Reason) machinist.Reason {
	if eventReason.MatchString(s) {
		return machinist.Reason(s)
	}
	return otherwise
}
