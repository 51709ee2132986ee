// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

// drain makes one round of draining. One that fails counts too: force has an end.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	round, err := r.round(ctx, in, kept, a)
	in.Drain = in.Drain.After(a.Mode, round, r.cfg.Clock.Now())
	return err
}

func (r *machines) round(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) (machine.DrainView, error) {
	now := r.cfg.Clock.Now()
	policy := drain.Policy{
		ForceAt: a.Mode.ForceAt, NodeUnreachable: a.Mode.NodeUnreachable, KeepSchedulable: a.Mode.KeepSchedulable,
		EvictUnmanaged: true, EvictLocalStorage: true, // a machine that goes takes its pods with it
	}
	seen := drain.Observation{
		Node: in.Node.Node, Looked: in.Node.Looked, Pods: r.podsOn(a.NodeName), PodsComplete: true, Answers: kept.answers,
	}
	plan := drain.Decide(seen, policy, now)
	if plan.Done { // the cache may not show yet what was bound just before the cordon
		var err error
		if seen.Pods, err = r.livePodsOn(ctx, a.NodeName); err != nil {
			return machine.DrainView{}, err
		}
		plan = drain.Decide(seen, policy, now)
	}
	results, err := drain.Carry(ctx, r.cfg.Target, plan)
	kept.answers = kept.answers.After(plan, results, policy, now)
	if err != nil && !plan.Done { // force does not wait for the cordon
		return machine.DrainView{}, err
	}
	round := machine.DrainView{Done: plan.Done, NextCheck: plan.NextCheck}
	seen.Answers = kept.answers // a pod whose eviction was refused waits for what refused it
	for _, row := range drain.Decide(seen, policy, now).Holds() {
		round.Holds = append(round.Holds, machine.Hold{
			Subject: "pod/" + row.Namespace + "/" + row.Name, Reason: machine.Reason(row.Reason), Message: row.Message, Until: row.Until,
		})
	}
	return round, nil
}

// livePodsOn reads the pods of a Node from the API server.
func (r *machines) livePodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	list, err := r.cfg.Target.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}
