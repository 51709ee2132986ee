// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one pass of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, a machine.DrainNode) error {
	state := in.Drain.StateFor(a)
	a.Policy.Volumes.ReattachTimeout = r.cfg.ReattachTimeout
	seen, notSeen := runner.Observe(ctx, r.drains, a.NodeName, a.Policy, state)
	seen.Node, seen.Reachability = in.Node.Node, a.Reachability // which may be newer than in the cache
	executor := runner.Executor{Client: r.cfg.Target, Clock: r.cfg.Clock, Parallel: r.cfg.parallel}
	state, plan, err := executor.Pass(ctx, state, seen, a.Policy, a.NodeName)
	in.Drain = in.Drain.After(a, state, plan, r.cfg.Clock.Now())
	return errors.Join(notSeen, err)
}
