// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/machinist-dev/machinist/codes"

// A Status is the result of an operation of a driver: a code, a message for people, and an
// optional cause. Use it by pointer. It is immutable, except for decoding, and safe for use by
// multiple goroutines. A nil *Status and a zero Status are successes.
type Status struct {
	code    codes.Code
	message string
	cause   error
}

// New returns a Status with a code and a message. With the code OK it is a success. Use
// [Status.Err] to return it as an error.
func New(code codes.Code, msg string) *Status {
	return &Status{code: code, message: msg}
}

// Error returns a *Status with a code and a message as an error. It returns nil for the code
// OK.
func Error(code codes.Code, msg string) error {
	return New(code, msg).Err()
}

// WrapError returns a *Status with a code, a message and a cause as an error. [errors.Is] and
// [errors.As] find the cause. The text of the error does not have it. With the code OK it
// returns nil without a cause, and otherwise an error with the code of the cause.
func WrapError(code codes.Code, msg string, cause error) error {
	if code == codes.OK {
		code = codes.Of(cause)
	}
	return (&Status{code: code, message: msg, cause: cause}).Err()
}

// Code returns the code. OK for a nil Status.
func (s *Status) Code() codes.Code {
	if s == nil {
		return codes.OK
	}
	return s.code
}

// Message returns the message. Empty for a nil Status.
func (s *Status) Message() string {
	if s == nil {
		return ""
	}
	return s.message
}

// Cause returns the wrapped error, or nil.
func (s *Status) Cause() error {
	if s == nil {
		return nil
	}
	return s.cause
}

// Unwrap returns the same as [Status.Cause], for [errors.Is] and [errors.As].
func (s *Status) Unwrap() error { return s.Cause() }

// Error returns the stable text, see the package comment.
func (s *Status) Error() string {
	return opening + s.Code().String() + middle + s.Message() + closing
}

// Err returns s as an error, and nil if s is a success. Use it to return a *Status as an
// error, because a nil *Status in an error is not nil.
func (s *Status) Err() error {
	if s.Code() == codes.OK {
		return nil
	}
	return s
}
