// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"
)

// timeSteps are the distances between the marks of a time axis.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 56 * day,
}

// numberSteps are the distances between the marks of an axis of machines.
var numberSteps = func() (steps []int) {
	for base := 1; base <= 100*maxMachines; base *= 10 {
		steps = append(steps, base, 2*base, 5*base)
	}
	return steps
}()

const day = 24 * time.Hour

// marksTo returns the marks of an axis from 0 to end: the first, and at most a number of others. The last
// one of the steps is long enough for that.
func marksTo[T int | time.Duration](end T, most int, steps []T) (marks []T) {
	for len(steps) > 1 && end/steps[0] > T(most) {
		steps = steps[1:]
	}
	for at := T(0); at <= end; at += steps[0] {
		marks = append(marks, at)
	}
	return marks
}

// span returns a duration as short text: 1h30m, 90ms, 0s.
func span(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
