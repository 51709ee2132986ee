// SPDX-License-Identifier: Apache-2.0

package line

import "unicode/utf8"

// Beginning returns the longest beginning of a text of at most n bytes that does not split a
// character. n is at least 0.
func Beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
