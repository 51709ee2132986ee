// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"slices"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// A Throttle limits the rate of calls: to Calls within any time span of length
// Per, all operations together. Calls beyond that are refused, are not counted,
// and say in the error when to come again. If Calls or Per is zero or less,
// nothing is limited.
type Throttle struct {
	// Calls that are let through.
	Calls int
	// Per is the time span.
	Per time.Duration
	// Code of the error. OK means Unavailable.
	Code codes.Code
}

// admit lets a call through, or returns the error to refuse it with.
func (c *Cloud) admit() error {
	t := c.options.Throttle
	if t.Calls <= 0 || t.Per <= 0 {
		return nil
	}
	c.recent = slices.DeleteFunc(c.recent, func(at time.Time) bool { return !c.now.Before(at.Add(t.Per)) })
	if len(c.recent) < t.Calls {
		c.recent = append(c.recent, c.now)
		return nil
	}
	err := status.Error(cmp.Or(t.Code, codes.Unavailable), "too many calls")
	return codes.WithRetryAfter(err, c.recent[0].Add(t.Per).Sub(c.now))
}
