// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	"github.com/machinist-dev/machinist/codes"
)

// The fixed parts of the text form.
const (
	opening = "machine codes error: code = ["
	middle  = "] message = ["
	closing = "]"
)

// parseText reads the text form, which may follow a prefix that ends in ": ".
// The first occurrence of the opening counts and no other: everything up to the
// last byte, which must be the closing bracket, is then the message. A code
// without a known name, and OK, are not accepted.
func parseText(text string) (code codes.Code, message string, ok bool) {
	prefix, rest, ok := strings.Cut(text, opening)
	if !ok || (prefix != "" && !strings.HasSuffix(prefix, ": ")) {
		return codes.Unknown, "", false
	}
	name, rest, ok := strings.Cut(rest, middle)
	if !ok {
		return codes.Unknown, "", false
	}
	code, ok = codes.Parse(name)
	if !ok || code == codes.OK {
		return codes.Unknown, "", false
	}
	message, ok = strings.CutSuffix(rest, closing)
	if !ok {
		return codes.Unknown, "", false
	}
	return code, message, true
}
