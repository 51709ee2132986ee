// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// EventKinds are all kinds of events.
var EventKinds = slices.Collect(maps.Keys(eventKinds))

// ReadEvent parses an event and makes its change in a deployment. It returns the time and the text
// without the time.
func ReadEvent(text string, d *v1alpha1.MachineDeployment) (time.Duration, string, error) {
	e, err := parseEvent(text)
	if err == nil && e.edit != nil {
		_ = e.edit(d) // some strategies have no bounds
	}
	return e.after, e.text, err
}

// ReadDeployment returns the only deployment of YAML documents, or the one with the name.
func ReadDeployment(data []byte, name string) (*v1alpha1.MachineDeployment, error) {
	return readDeployment(bytes.NewReader(data), "-", name)
}

// Span returns a duration as short text.
func Span(d time.Duration) string { return span(d) }

// TimeMarks returns the marks of a time axis.
func TimeMarks(end time.Duration, most int) []time.Duration { return marksTo(end, most, timeSteps) }

// NumberMarks returns the marks of an axis of machines.
func NumberMarks(end, most int) []int { return marksTo(end, most, numberSteps) }

// Thinned returns at most four frames for each column of a width.
func Thinned(frames []Frame, width time.Duration) []Frame {
	return thinned(frames, func(f Frame) int { return int(f.After.Duration / width) })
}
