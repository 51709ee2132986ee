// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one round of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	if !in.Drain.Concerns(a.Mode) {
		kept.draining = drain.State{}
	}
	sources := r.drains.Sources()
	sources.Nodes = known{in.Node.Node}
	seen, err := sources.Observe(ctx, a.NodeName, kept.draining)
	if err != nil {
		return err // it fails only without informers
	}
	seen.Reach = drain.Reach{}
	if a.Mode.NodeUnreachable {
		seen.Reach.State = drain.Unreachable
	}
	policy := drain.ForMachine(a.Mode.ForceAt)
	policy.KeepSchedulable = a.Mode.KeepSchedulable
	policy.Volumes = drain.VolumePolicy{Wait: a.Mode.Detach, DetachTimeout: a.Mode.DetachTimeout}
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

// known is the Node as it is known, which may be newer than what the cache shows.
type known struct{ node *corev1.Node }

func (k known) Node(context.Context, string) (*corev1.Node, error) { return k.node, nil }
