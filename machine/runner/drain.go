// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"

	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one pass of the drain. A failed pass counts too, so that a drain by force ends.
func (p *pass) drain(ctx context.Context, a machine.DrainNode) error {
	state := p.in.Drain.StateFor(a)
	seen, notSeen := drainrunner.Observe(ctx, p.Reader, a.NodeName, a.Policy, state)
	seen.Node, seen.Reachability = p.in.Node.Node, a.Reachability // may be newer than the cache
	executor := drainrunner.Executor{Client: drainrunner.NewClient(p.Target), Clock: p.Clock, Parallel: p.Parallel}
	if p.Drains != nil {
		executor.Observer = p.Drains
	}
	state, plan, err := executor.Pass(ctx, state, seen, a.Policy, a.NodeName)
	p.in.Drain = p.in.Drain.After(a, state, plan, p.now())
	if notSeen == nil && err == nil {
		p.reportDrain(plan)
	}
	return errors.Join(notSeen, err)
}

// reportDrain reports the progress since the last decision of the drain to the observer.
func (p *pass) reportDrain(d drain.Decision) {
	if p.Drains == nil {
		return
	}
	if p.draining.reported.Node != d.Node || p.draining.reported.Over() {
		p.draining.reported = drain.Decision{}
	}
	for _, progress := range drain.Compare(p.draining.reported, d, nil, p.now()) {
		p.Drains.Observe(progress)
	}
	p.draining.reported = d
}

// forgetDrain reports to the observer that a drain ends before its outcome.
func (e *Executor) forgetDrain(kept *drainMemory) {
	if e.Drains != nil && kept != nil && kept.reported.Node != "" && !kept.reported.Over() {
		e.Drains.Forget(kept.reported.Node)
	}
}
