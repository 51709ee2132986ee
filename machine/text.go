// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// maxEventMessage is the maximum length of the message of an Event, in bytes.
const maxEventMessage = 1024

// shorten returns a message in at most maxEventMessage bytes.
func shorten(s string) string { return cut(s, maxEventMessage) }

// excerpt returns the beginning of a value of any length.
func excerpt(value string) string { return cut(value, 64) }

// cut returns a text in at most the given number of bytes. It does not split a character.
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

// The following functions check labels and annotations as the API server does.

func labelKey(key string) bool { return len(content.IsLabelKey(key)) == 0 }

func labelValue(value string) bool { return len(content.IsLabelValue(value)) == 0 }

func annotationKey(key string) bool { return labelKey(strings.ToLower(key)) }
