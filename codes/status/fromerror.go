// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"

	"github.com/machinist-dev/machinist/codes"
)

// FromError returns err as a Status, and whether err itself said what its code
// is. The first of these rules that applies decides:
//
//  1. nil is (nil, true); a nil *Status is a success.
//  2. By type: the first error with a code in err's tree, in the order of
//     [errors.As]. A *Status is returned as it is, without what is wrapped around
//     it; another error with a method Code() codes.Code, and a context error,
//     become a Status with that code, the full text of err as message, and err as
//     cause. True.
//  3. By text, for an error that lost its type on the way through a string: the
//     text is exactly that of a Status, or ends in it after a prefix that ends in
//     ": ". Code and message are what the text says, the cause is err. True.
//  4. All else is foreign: code Unknown, the full text of err as message, err as
//     cause. False. So is an error whose own code is OK, such as a nil *Status in
//     an error: what is not nil is not a success.
//
// Up to rule 2 the code is that of codes.Of, which knows no text; no text,
// whatever it holds, changes the code of a typed error. Brackets in a foreign
// text mean nothing. If a wrapper put more text behind the canonical one, rule 3
// fails, or, where that text ends in a bracket too, takes it for part of the
// message; the code is right all the same.
//
// Rule 3 believes what a text says of itself. Where a wrong NotFound would cost
// a VM, ask codes.Of, which believes types only.
func FromError(err error) (*Status, bool) {
	if err == nil {
		return nil, true
	}
	code := codes.Of(err)
	if typed, ok := errors.AsType[codes.Coder](err); ok && typed != nil {
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
