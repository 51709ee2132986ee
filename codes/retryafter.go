// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"errors"
	"time"
)

// A RetryAfterer is an error with a requested wait, such as that of a Retry-After header.
type RetryAfterer interface {
	error
	// RetryAfter returns how long to wait. Zero or less means that no wait is requested.
	RetryAfter() time.Duration
}

// WithRetryAfter returns err with a wait that [RetryAfterOf] finds. Its text, code and causes
// stay the same. It returns a nil err, and err itself if d is zero or less.
func WithRetryAfter(err error, d time.Duration) error {
	if err == nil || d <= 0 {
		return err
	}
	return &delayed{err: err, after: d}
}

// RetryAfterOf returns the wait of the first [RetryAfterer] in the tree of err, in the order
// of [errors.As]. It returns zero without one and for a negative wait.
func RetryAfterOf(err error) time.Duration {
	var r RetryAfterer
	ok := errors.As(err, &r)
	if !ok {
		return 0
	}
	return max(0, r.RetryAfter())
}

// delayed is an error with a requested wait.
type delayed struct {
	err   error
	after time.Duration
}

func (d *delayed) Error() string             { return d.err.Error() }
func (d *delayed) Unwrap() error             { return d.err }
func (d *delayed) RetryAfter() time.Duration { return d.after }
