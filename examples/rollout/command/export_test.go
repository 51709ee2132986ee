// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// EventKinds are all kinds of events.
var EventKinds = []eventKind{
	eventReplicas, eventClass, eventSurge, eventUnavailable, eventPause, eventResume, eventRollback, eventDelete, eventSelect, eventQuota,
}

// ReadEvent reads an event and does to a deployment what it says of one; it returns when it
// happens, and what was given.
func ReadEvent(text string, d *v1alpha1.MachineDeployment) (time.Duration, string, error) {
	e, err := parseEvent(text)
	if err == nil {
		_ = e.edit(d) // some strategies have no bounds
	}
	return e.after, e.text, err
}

// ReadDeployment reads the first deployment of YAML documents.
func ReadDeployment(data []byte) (*v1alpha1.MachineDeployment, error) { return parseDeployment(data) }

// Span is a time in words.
func Span(d time.Duration) string { return span(d) }

// TimeMarks and NumberMarks are the marks of axes.
var (
	TimeMarks   = timeMarks
	NumberMarks = numberMarks
)

// Thinned returns fewer frames, by columns that are this wide.
func Thinned(frames []Frame, width time.Duration) []Frame {
	return thinned(frames, func(f Frame) int { return int(f.After.Duration / width) })
}
