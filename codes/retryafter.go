// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"errors"
	"time"
)

// A RetryAfterer is an error that knows when its sender wants to be asked
// again, as cloud APIs say in a Retry-After header.
type RetryAfterer interface {
	error
	// RetryAfter returns how long to wait. Zero and less mean that the sender
	// does not say.
	RetryAfter() time.Duration
}

// WithRetryAfter returns err with a waiting time that [RetryAfterOf] finds. The
// text of err, its code and all that it wraps stay visible. A nil err stays
// nil, and with d of zero or less err is returned as it is.
func WithRetryAfter(err error, d time.Duration) error {
	if err == nil || d <= 0 {
		return err
	}
	return &delayed{err: err, after: d}
}

// RetryAfterOf returns the waiting time that the first [RetryAfterer] in err's
// tree asks for, in the order of [errors.As]. Without one, for a nil err and
// for a time of zero or less it returns zero.
func RetryAfterOf(err error) time.Duration {
	r, ok := errors.AsType[RetryAfterer](err)
	if !ok {
		return 0
	}
	return max(0, r.RetryAfter())
}

// delayed is an error with a waiting time.
type delayed struct {
	err   error
	after time.Duration
}

func (d *delayed) Error() string             { return d.err.Error() }
func (d *delayed) Unwrap() error             { return d.err }
func (d *delayed) RetryAfter() time.Duration { return d.after }
