// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Round decides and carries out one round of the drain of a Node, and returns what
// is left to wait for and what is to be remembered of it. The pods of the
// observation may come from a cache, which need not show what was bound to the Node
// just before it was fenced: what looks drained is looked at again, with a list
// of the pods of the Node from the API server.
//
// The plan that is returned was decided after the requests, so that a pod whose
// eviction was refused waits for what refused it; whether it is over was decided
// before them. An error says that the round could not be carried out, as of
// [Executor.Carry] or of the list; then the plan is not over. That a Node could not be
// fenced is no error when the ladder has ended, which does not wait for it.
func (e Executor) Round(ctx context.Context, s State, in Observation, p Policy, nodeName string) (State, Plan, error) {
	now := e.clock().Now()
	if e.Client == nil {
		return s, Plan{Node: nodeName, Reason: ReasonNotObserved, NextCheck: now.Add(p.retryEvery())}, ErrNoClient
	}
	next, plan := Step(s, in, p, now)
	if plan.Outcome == Drained || plan.Outcome == Proceeded {
		pods, err := e.podsOn(ctx, nodeName)
		if err != nil {
			return s, Plan{Node: nodeName, Reason: ReasonNotObserved, NextCheck: now.Add(p.retryEvery())}, err
		}
		in.Pods = All(pods...)
		next, plan = Step(s, in, p, now)
	}
	results, err := e.Carry(ctx, plan)
	if plan.Over() {
		return next, plan, err
	}
	in.Results = results
	next, left := Step(next, in, p, now)
	return next, left, err
}

// podsOn reads the pods of a Node from the API server.
func (e Executor) podsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	list, err := e.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
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
