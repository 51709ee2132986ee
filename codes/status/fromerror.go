// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"

	"github.com/machinist-dev/machinist/codes"
)

// FromError returns err as a Status, and whether err has a code. The first rule that matches
// decides:
//
//  1. nil returns nil and true. A nil *Status is a success.
//  2. An error with a code in the tree of err, in the order of [errors.As], returns true. A
//     *Status is returned without the errors around it. Another error with a method
//     Code() codes.Code, and a context error, become a Status with the text of err as message
//     and err as cause.
//  3. An error whose text is that of a Status, alone or after a prefix that ends in ": ",
//     returns true. The Status has the code and message of the text, and err as cause.
//  4. Any other error returns false. The Status has the code Unknown, the text of err as
//     message, and err as cause. An error with the code OK is one of them.
//
// In rule 2 the code is that of codes.Of. The text of a typed error never changes its code.
// Rule 3 trusts the text. If a wrong NotFound could delete or duplicate a VM, use codes.Of.
func FromError(err error) (*Status, bool) {
	if err == nil {
		return nil, true
	}
	code := codes.Of(err)
	var typed codes.Coder
	if ok := errors.As(err, &typed); ok && typed != nil {
		switch s, isStatus := typed.(*Status); {
		case typed.Code() == codes.OK:
			return foreign(err)
		case isStatus:
			return s, true
		}
		return &Status{code: code, message: err.Error(), cause: err}, true
	}
	text := err.Error()
	if code != codes.Unknown {
		return &Status{code: code, message: text, cause: err}, true
	}
	if code, message, ok := parseText(text); ok {
		return &Status{code: code, message: message, cause: err}, true
	}
	return foreign(err)
}

// foreign returns the Status of an error that has no code.
func foreign(err error) (*Status, bool) {
	return &Status{code: codes.Unknown, message: err.Error(), cause: err}, false
}
