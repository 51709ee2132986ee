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

// parseText parses the text of a Status, which may follow a prefix that ends in ": ". The
// message begins after the first opening and ends at the last byte, which must be the closing
// bracket. It refuses unknown names and OK.
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
