// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one pass of the drain. A failed pass counts too, so that a drain by force ends.
func (r *machineReconciler) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	state := in.Drain.StateFor(a)
	seen, notSeen := runner.Observe(ctx, r.drains, a.NodeName, a.Policy, state)
	seen.Node, seen.Reachability = in.Node.Node, a.Reachability // may be newer than the cache
	executor := runner.Executor{Client: r.cfg.Target, Clock: r.cfg.Clock, Parallel: r.cfg.parallel}
	if r.cfg.Drains != nil {
		executor.Observer = r.cfg.Drains
	}
	state, plan, err := executor.Pass(ctx, state, seen, a.Policy, a.NodeName)
	in.Drain = in.Drain.After(a, state, plan, r.cfg.Clock.Now())
	if notSeen == nil && err == nil {
		r.reportDrain(kept, plan)
	}
	return errors.Join(notSeen, err)
}

// reportDrain reports the progress since the last decision of the drain to the observer.
func (r *machineReconciler) reportDrain(kept *memory, d drain.Decision) {
	if r.cfg.Drains == nil {
		return
	}
	if kept.reported.Node != d.Node || kept.reported.Over() {
		kept.reported = drain.Decision{}
	}
	for _, p := range drain.Compare(kept.reported, d, nil, r.cfg.Clock.Now()) {
		r.cfg.Drains.Observe(p)
	}
	kept.reported = d
}

// forgetDrain reports to the observer that a drain ends before its outcome.
func (r *machineReconciler) forgetDrain(kept memory) {
	if kept.reported.Node != "" && !kept.reported.Over() {
		r.cfg.Drains.Forget(kept.reported.Node)
	}
}
