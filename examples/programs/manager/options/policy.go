// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// Config returns what the controllers get of the flags: the part, the policies, and numbers. The
// caller adds the clients, the driver and the observers.
func (s *MCServer) Config() controllers.Config {
	c := controllers.Config{
		Part: s.Part(), Policy: machine.DefaultPolicy(), Orphans: safety.DefaultPolicy(), Overshoot: safety.DefaultOvershootPolicy(),
	}
	for _, f := range NewManagerServer().settings() {
		if f.reach != nil {
			f.reach(s, &c)
		}
	}
	return c
}

// positive returns the value if it is positive, or else the default.
func positive[T cmp.Ordered](value, otherwise T) T {
	var zero T
	if value > zero {
		return value
	}
	return otherwise
}

func reachSettle(s *MCServer, c *controllers.Config) {
	c.Policy.Settle = positive(s.SettleTime, -1) // zero would be the default
}

func reachCapacity(s *MCServer, c *controllers.Config) {
	if wait := s.ResourceExhaustedRetry; wait > 0 {
		c.Policy.Backoff.WaitForCapacity = codes.Pace{Base: wait, Cap: wait}
	}
}

// reachGuard sets the policy for many machines that fail at the same time. Zero is off. Replacements
// slow down at 30 %, or at HoldPercent if that is less.
func reachGuard(s *MCServer, c *controllers.Config) {
	if s.HoldPercent > 0 {
		c.Guard = safety.DefaultGuardPolicy()
		c.Guard.HoldPercent, c.Guard.SlowPercent = s.HoldPercent, min(c.Guard.SlowPercent, s.HoldPercent)
	}
}

// groupsOf returns the extra groups of bootstrap tokens, in the order of the text, without
// duplicates.
func groupsOf(text string) (groups []string) {
	for group := range strings.SplitSeq(text, ",") {
		if group = strings.TrimSpace(group); group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}
