// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one round of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	if !in.Drain.Concerns(a.Mode) {
		kept.draining = drain.State{}
	}
	policy := drain.ForMachine(a.Mode.ForceAt)
	policy.KeepSchedulable = a.Mode.KeepSchedulable
	policy.Volumes = drain.VolumePolicy{Wait: a.Mode.Detach, DetachTimeout: a.Mode.DetachTimeout, ReattachTimeout: r.cfg.ReattachTimeout}
	seen, notSeen := runner.Observe(ctx, r.drains, a.NodeName, policy, kept.draining)
	seen.Node, seen.Reachability = in.Node.Node, drain.NodeReachability{} // which may be newer than in the cache
	if a.Mode.NodeUnreachable {
		seen.Reachability = drain.NodeReachability{Unreachable: true, Since: a.Mode.UnreachableSince}
	}
	executor := runner.Executor{Client: r.cfg.Target, Clock: r.cfg.Clock, Parallel: r.cfg.parallel}
	state, plan, err := executor.Pass(ctx, kept.draining, seen, policy, a.NodeName)
	kept.draining = state
	round := machine.DrainView{Done: plan.Over(), NextCheck: plan.NextCheck, Holds: plan.Holds()}
	in.Drain = in.Drain.After(a.Mode, round, r.cfg.Clock.Now())
	return errors.Join(notSeen, err)
}
