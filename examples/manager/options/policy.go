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

// MachinePolicy returns the policy of machines that the flags state.
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

// DeploymentPolicy returns the policy of machine deployments that the flags state.
func (s *MCServer) DeploymentPolicy() deployment.Policy {
	return deployment.Policy{HoldAutoscaler: s.HoldAutoscaler}
}

// BootstrapGroups returns the groups that the flags state for bootstrap tokens, in
// their order, each once. The caller owns the result.
func (s *MCServer) BootstrapGroups() []string {
	var groups []string
	for group := range strings.SplitSeq(s.TokenGroups, ",") {
		if group = strings.TrimSpace(group); group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// GuardPolicy returns the policy of machines that fail at once which the flags state: zero,
// which is off, without a share. Machines are replaced slowly from 30 % on, or from the share
// that holds if that is less.
func (s *MCServer) GuardPolicy() safety.GuardPolicy {
	if s.HoldPercent <= 0 {
		return safety.GuardPolicy{}
	}
	p := safety.DefaultGuardPolicy()
	p.HoldPercent, p.SlowPercent = s.HoldPercent, min(p.SlowPercent, s.HoldPercent)
	return p
}

// OvershootPolicy returns the policy of sets that create too many machines which the flags
// state.
func (s *MCServer) OvershootPolicy() safety.OvershootPolicy {
	p := safety.OvershootPolicy{Up: s.OvershootUp, Down: s.OvershootDown, Period: s.OvershootPeriod}
	if p.Period <= 0 {
		p.Period = safety.DefaultOvershootPolicy().Period
	}
	return p
}

// FreezePolicy returns the policy of a freeze that the flags state.
func (s *MCServer) FreezePolicy() safety.FreezePolicy {
	return safety.FreezePolicy{Timeout: s.FreezeTimeout, Period: s.FreezePeriod}
}

// OrphanPolicy returns the policy of VMs that nobody owns which the flags state.
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
