// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one round of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	policy := drain.ForMachine(a.Mode.ForceAt)
	policy.KeepSchedulable = a.Mode.KeepSchedulable
	seen := drain.Observation{Node: in.Node.Node, Looked: in.Node.Looked, Pods: drain.All(r.podsOn(a.NodeName)...)}
	if a.Mode.NodeUnreachable {
		seen.Reach.State = drain.Unreachable
	}
	executor := drain.Executor{Client: r.cfg.Target, Clock: r.cfg.Clock, Parallel: 1}
	state, plan, err := executor.Round(ctx, kept.draining, seen, policy, a.NodeName)
	kept.draining = state
	round := machine.DrainView{Done: plan.Over(), NextCheck: plan.NextCheck}
	for _, h := range plan.Holds() {
		round.Holds = append(round.Holds, machine.Hold{
			Subject: h.Subject, Reason: machine.Reason(h.Reason), Message: h.Message, Until: h.Until,
		})
	}
	in.Drain = in.Drain.After(a.Mode, round, r.cfg.Clock.Now())
	return err
}
