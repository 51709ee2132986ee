// SPDX-License-Identifier: Apache-2.0

package codes

import "context"

// A Coder is an error with a code, such as *status.Status or your own error type.
type Coder interface {
	error
	// Code returns the code of the failure. [Of] reads OK as Unknown.
	Code() Code
}

// Of returns the code of err:
//
//  1. [OK] if err is nil. An error whose Code method returns OK is [Unknown], such as a nil
//     *status.Status in an error.
//  2. The code of the first [Coder] in the tree of err, in the order of [errors.As].
//  3. Without a Coder, the code of the first context error in the same order: Canceled or
//     DeadlineExceeded. An error with an Is method for one of them counts too.
//  4. Otherwise Unknown.
//
// The code of a driver thus has priority over a context error. The text of an error does not
// count: an error that was a string in between is Unknown. status.FromError can restore it.
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

// search returns the code of the first Coder in the tree of err and true. Without one it
// returns the code of the first context error, or Unknown, and false.
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

// converted returns the Coder that the As method of err gives, if there is one.
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

// contextCode returns the code of err if err itself is a context error, otherwise Unknown.
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

// neverOK returns Unknown for OK, otherwise c.
func neverOK(c Code) Code {
	if c == OK {
		return Unknown
	}
	return c
}
