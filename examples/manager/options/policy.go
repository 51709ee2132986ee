// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// MachinePolicy returns the policy of machines.
func (s *MCServer) MachinePolicy() machine.Policy {
	p := machine.DefaultPolicy()
	p.CreationTimeout, p.HealthTimeout, p.DrainTimeout = s.CreationTimeout, s.HealthTimeout, s.DrainTimeout
	p.InPlaceTimeout, p.PreserveTimeout, p.DetachTimeout = s.InPlaceUpdateTimeout, s.PreserveTimeout, s.PVDetachTimeout
	p.MaxReplacements = s.MaxReplacements
	p.HealthConditions = machine.ParseHealthConditions(s.NodeConditions)
	p.Settle = s.SettleTime
	if p.Settle <= 0 {
		p.Settle = -1 // zero would be the default
	}
	if wait := s.ResourceExhaustedRetry; wait > 0 {
		p.Backoff.WaitForCapacity = codes.Pace{Base: wait, Cap: wait}
	}
	return p
}

// DeploymentPolicy returns the policy of machine deployments.
func (s *MCServer) DeploymentPolicy() deployment.Policy {
	return deployment.Policy{HoldAutoscaler: s.HoldAutoscaler}
}

// BootstrapGroups returns the extra groups of bootstrap tokens, in the order of the flag, without
// duplicates. The caller owns the result.
func (s *MCServer) BootstrapGroups() []string {
	var groups []string
	for group := range strings.SplitSeq(s.TokenGroups, ",") {
		if group = strings.TrimSpace(group); group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// GuardPolicy returns the policy for many machines that fail at the same time. It is zero, which is
// off, if HoldPercent is zero. Replacements slow down at 30 %, or at HoldPercent if that is less.
func (s *MCServer) GuardPolicy() safety.GuardPolicy {
	if s.HoldPercent <= 0 {
		return safety.GuardPolicy{}
	}
	p := safety.DefaultGuardPolicy()
	p.HoldPercent, p.SlowPercent = s.HoldPercent, min(p.SlowPercent, s.HoldPercent)
	return p
}

// OvershootPolicy returns the policy of sets with too many machines.
func (s *MCServer) OvershootPolicy() safety.OvershootPolicy {
	p := safety.OvershootPolicy{Up: s.OvershootUp, Down: s.OvershootDown, Period: s.OvershootPeriod}
	if p.Period <= 0 {
		p.Period = safety.DefaultOvershootPolicy().Period
	}
	return p
}

// FreezePolicy returns the policy of a freeze.
func (s *MCServer) FreezePolicy() safety.FreezePolicy {
	return safety.FreezePolicy{Timeout: s.FreezeTimeout, Period: s.FreezePeriod}
}

// OrphanPolicy returns the policy of orphan VMs.
func (s *MCServer) OrphanPolicy() safety.Policy {
	p := safety.DefaultPolicy()
	set := func(d *time.Duration, value time.Duration) {
		if value > 0 {
			*d = value
		}
	}
	set(&p.Period, s.OrphanVMsPeriod)
	set(&p.Grace, s.OrphanVMsGrace)
	return p
}
