// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// maxEventMessage is how long the note of an event may be, in bytes.
const maxEventMessage = 1024

// shorten cuts a message where an event has no more room.
func shorten(s string) string { return cut(s, maxEventMessage) }

// excerpt returns the beginning of a value that may be of any length.
func excerpt(value string) string { return cut(value, 64) }

// cut returns a text in at most so many bytes. It cuts between two characters.
func cut(s string, most int) string {
	const more = "…"
	if len(s) <= most {
		return s
	}
	end := most - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// The forms of labels and annotations are those of the API server.

func labelKey(key string) bool { return len(content.IsLabelKey(key)) == 0 }

func labelValue(value string) bool { return len(content.IsLabelValue(value)) == 0 }

func annotationKey(key string) bool { return labelKey(strings.ToLower(key)) }
