// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeSteps are the distances between the marks of a time axis.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 56 * day,
}

const day = 24 * time.Hour

// timeMarks returns the marks of a time axis from 0 to end: the first, and at most a number of others.
func timeMarks(end time.Duration, most int) []time.Duration {
	i := slices.IndexFunc(timeSteps, func(s time.Duration) bool { return end/s <= time.Duration(most) })
	step := timeSteps[len(timeSteps)-1]
	if i >= 0 {
		step = timeSteps[i]
	}
	var marks []time.Duration
	for at := time.Duration(0); at <= end; at += step {
		marks = append(marks, at)
	}
	return marks
}

// numberMarks returns the marks of an axis from 0 to end: the first, and at most a number of others.
func numberMarks(end, most int) []int {
	step := 1
	for base := 1; end/step > most; base *= 10 {
		for _, f := range []int{1, 2, 5} {
			if step = f * base; end/step <= most {
				break
			}
		}
	}
	var marks []int
	for n := 0; n <= end; n += step {
		marks = append(marks, n)
	}
	return marks
}

// span returns a duration as short text: 1h30m, 90ms, 0s.
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
	}
	var b strings.Builder
	if days := d / day; days > 0 {
		b.WriteString(strconv.FormatInt(int64(days), 10) + "d")
		d %= day
		if d == 0 {
			return b.String()
		}
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	b.WriteString(text)
	return b.String()
}
