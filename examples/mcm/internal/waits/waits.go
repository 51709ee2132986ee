// SPDX-License-Identifier: Apache-2.0

// Package waits repeats operations.
package waits

import (
	"context"
	"time"
)

// Until calls an operation until it succeeds, at once and then after pauses that begin with initial and double up to
// longest. It returns the last error of the operation when the next call would be later than limit after the first one,
// and that of the context when that ends. Zero or less means no limit for limit, a millisecond for initial, and initial
// for longest.
func Until(ctx context.Context, initial, longest, limit time.Duration, operation func() error) error {
	began, pause := time.Now(), max(initial, time.Millisecond)
	for {
		err := operation()
		if err == nil || limit > 0 && time.Since(began)+pause > limit {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = max(min(2*pause, longest), pause)
	}
}
