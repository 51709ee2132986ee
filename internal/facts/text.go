// SPDX-License-Identifier: Apache-2.0

package facts

import "github.com/machinist-dev/machinist/internal/line"

// maxEventMessage is the maximum length of the message of an Event, in bytes.
const maxEventMessage = 1024

// Shorten returns a message in at most maxEventMessage bytes.
func Shorten(s string) string { return cut(s, maxEventMessage) }

// Excerpt returns the beginning of a value of any length.
func Excerpt(value string) string { return cut(value, 64) }

// cut returns a text in at most the given number of bytes. It does not split a character.
func cut(s string, most int) string {
	const more = "…"
	if len(s) <= most {
		return s
	}
	return line.Beginning(s, most-len(more)) + more
}
