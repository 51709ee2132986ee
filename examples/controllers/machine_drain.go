// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one round of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	now := r.cfg.Clock.Now()
	policy := drain.Policy{
		ForceAt: a.Mode.ForceAt, NodeUnreachable: a.Mode.NodeUnreachable, KeepSchedulable: a.Mode.KeepSchedulable,
		EvictUnmanaged: true, EvictLocalStorage: true, // a machine that goes takes its pods with it
	}
	seen := drain.Observation{
		Node: in.Node.Node, Looked: in.Node.Looked, Pods: r.podsOn(a.NodeName), PodsComplete: true, Answers: kept.answers,
	}
	plan, answers, err := drain.Round(ctx, r.cfg.Target, seen, policy, a.NodeName, now)
	kept.answers = answers
	round := machine.DrainView{Done: plan.Done, NextCheck: plan.NextCheck}
	for _, row := range plan.Holds() {
		round.Holds = append(round.Holds, machine.Hold{
			Subject: "pod/" + row.Namespace + "/" + row.Name, Reason: machine.Reason(row.Reason), Message: row.Message, Until: row.Until,
		})
	}
	in.Drain = in.Drain.After(a.Mode, round, now)
	return err
}
