// SPDX-License-Identifier: Apache-2.0

package codes

import "context"

// A Coder is an error that knows its code. *status.Status is one; an error type
// of your own is one as soon as it has the method.
type Coder interface {
	error
	// Code returns the code of the failure. OK makes no sense in an error; [Of]
	// reads it as Unknown.
	Code() Code
}

// Of returns the code of err:
//
//  1. [OK] if err is nil, and in no other case: an error whose Code method
//     answers OK, which is what a nil *status.Status in an error does, is
//     [Unknown].
//  2. The code of the first [Coder] in err's tree, in the order of [errors.As]:
//     err itself, what it wraps, the branches of a joined error one after the
//     other and each to its end.
//  3. Without a Coder, the first context error in the same order:
//     [context.Canceled] is Canceled, [context.DeadlineExceeded] is
//     DeadlineExceeded; errors that equal one of them by an Is method (timeouts
//     of package net) count too.
//  4. Unknown.
//
// So a driver's own verdict always wins over a context error, whether that is
// the cause inside the verdict, stands beside it, or is wrapped around it.
//
// The text of an error never decides. An error that crossed a process boundary
// as a string is Unknown here; status.FromError can recover it.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	if c, ok := err.(Coder); ok { //nolint:errorlint // the usual case first; the tree is searched below
		return neverOK(c.Code())
	}
	code, _ := search(err)
	return code
}

// search walks the tree of err. It returns the code of the first Coder and
// true, or else the code of the first context error, or Unknown, and false.
func search(err error) (Code, bool) {
	code := Unknown
	for err != nil {
		if c, ok := err.(Coder); ok { //nolint:errorlint // one node of the tree at a time
			return neverOK(c.Code()), true
		}
		if c, ok := converted(err); ok {
			return neverOK(c.Code()), true
		}
		if code == Unknown {
			code = contextCode(err)
		}
		switch wrapper := err.(type) { //nolint:errorlint // one node of the tree at a time
		case interface{ Unwrap() error }:
			err = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range wrapper.Unwrap() {
				found, typed := search(branch)
				if typed {
					return found, true
				}
				if code == Unknown {
					code = found
				}
			}
			return code, false
		default:
			return code, false
		}
	}
	return code, false
}

// converted asks the As method of err, if it has one, for a Coder.
func converted(err error) (Coder, bool) {
	as, ok := err.(interface{ As(target any) bool })
	if !ok {
		return nil, false
	}
	target := new(Coder)
	if !as.As(target) || *target == nil {
		return nil, false
	}
	return *target, true
}

// contextCode returns the code of err if it is a context error itself, and
// Unknown otherwise.
func contextCode(err error) Code {
	switch err { //nolint:errorlint // one node of the tree at a time
	case context.Canceled:
		return Canceled
	case context.DeadlineExceeded:
		return DeadlineExceeded
	}
	is, ok := err.(interface{ Is(target error) bool })
	switch {
	case !ok:
		return Unknown
	case is.Is(context.Canceled):
		return Canceled
	case is.Is(context.DeadlineExceeded):
		return DeadlineExceeded
	default:
		return Unknown
	}
}

// neverOK turns OK into Unknown.
func neverOK(c Code) Code {
	if c == OK {
		return Unknown
	}
	return c
}
