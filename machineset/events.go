// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
)

// The reasons of the events of a set.
const (
	// EventCreated is the reason of the event for a machine that was created.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed is the reason of the event for one that was not.
	EventCreateFailed = "FailedCreate"
	// EventDeleted is the reason of the event for a machine that was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed is the reason of the event for one that was not.
	EventDeleteFailed = "FailedDelete"
)

// Created returns what to report on the set once the creation of a machine has
// been answered, with the error of the answer or nil. An answer that was cut short
// by the end of the caller tells nothing, and is not to be reported.
func Created(name string, err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: EventCreateFailed, Message: "Error creating: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: EventCreated, Message: "Created Machine: " + name}
}

// Deleted returns the same of the deletion of a machine. That it was gone already
// is nothing to report.
func Deleted(name string, err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: EventDeleteFailed, Message: "Error deleting: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: EventDeleted, Message: "Deleted machine: " + name}
}
