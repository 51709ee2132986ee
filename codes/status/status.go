// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/machinist-dev/machinist/codes"

// A Status is how an operation of a driver ended: a code, a message for people,
// and the error behind it if there is one. Use it by pointer. It does not
// change after it was made, and may be shared, unless it is decoded into.
//
// A nil *Status is a success: its code is OK, and its message and cause are
// empty. A zero Status is one too.
type Status struct {
	code    codes.Code
	message string
	cause   error
}

// New returns a Status with a code and a message. Unlike [Error] it takes the
// code OK; such a Status is a success and no use as an error, for which there is
// [Status.Err].
func New(code codes.Code, msg string) *Status {
	return &Status{code: code, message: msg}
}

// Error returns a *Status with a code and a message as an error, and nil for the
// code OK.
func Error(code codes.Code, msg string) error {
	return New(code, msg).Err()
}

// WrapError returns a *Status with a code, a message and a cause as an error.
// [errors.Is] and [errors.As] see the cause; the text of the error does not show
// it, so say in msg what people should know.
//
// For the code OK it returns nil if there is no cause. With a cause something
// did fail, and the error gets the cause's own code, as codes.Of finds it.
func WrapError(code codes.Code, msg string, cause error) error {
	if code == codes.OK {
		code = codes.Of(cause)
	}
	return (&Status{code: code, message: msg, cause: cause}).Err()
}

// Code returns the code; OK for a nil Status.
func (s *Status) Code() codes.Code {
	if s == nil {
		return codes.OK
	}
	return s.code
}

// Message returns the message as it was given; "" for a nil Status.
func (s *Status) Message() string {
	if s == nil {
		return ""
	}
	return s.message
}

// Cause returns the error that was wrapped, or nil.
func (s *Status) Cause() error {
	if s == nil {
		return nil
	}
	return s.cause
}

// Unwrap returns the same as [Status.Cause], for [errors.Is] and [errors.As].
func (s *Status) Unwrap() error { return s.Cause() }

// Error returns the stable text form; see the package comment.
func (s *Status) Error() string {
	return opening + s.Code().String() + middle + s.Message() + closing
}

// Err returns s as an error, and nil if s is a success. It is the safe way to
// return a *Status from a function whose result is an error: a nil *Status
// would become an error that is not nil.
func (s *Status) Err() error {
	if s.Code() == codes.OK {
		return nil
	}
	return s
}
