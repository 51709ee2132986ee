// SPDX-License-Identifier: Apache-2.0

package facts

import "strings"

// WaitsMark begins what the description of an operation says about waits. Nothing follows that.
const WaitsMark = "; waits for "

// WithoutMark returns a text in which [WaitsMark] is replaced.
func WithoutMark(text string) string { return strings.ReplaceAll(text, WaitsMark, ", waits for ") }

// WithoutWaits returns the description of an operation without what it says about waits.
func WithoutWaits(description string) string {
	before, _, _ := strings.Cut(description, WaitsMark)
	return before
}

// WaitsDetails begins the times in what the description of an operation says about waits.
const WaitsDetails = " (since "

// WithoutDetails returns the description of an operation without the times of its waits, which change while
// the machine waits for the same.
func WithoutDetails(description string) string {
	before, waits, found := strings.Cut(description, WaitsMark)
	if !found {
		return description
	}
	if i := strings.LastIndex(waits, WaitsDetails); i >= 0 {
		waits = waits[:i]
	}
	return before + WaitsMark + waits
}
