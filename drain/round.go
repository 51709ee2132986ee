// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// Round decides and carries out one round of the drain of a Node, and returns what
// is left to wait for and what is to be remembered of it. The pods of the
// observation may come from a cache, which need not show what was bound to the Node
// just before it was cordoned: what looks drained is looked at again, with a list
// of the pods of the Node from the API server.
//
// The plan that is returned was decided after the requests, so that a pod whose
// eviction was refused waits for what refused it; whether it is done was decided
// before them. An error says that the round could not be carried out, as of [Carry]
// or of the list; then the plan is not done. That a Node could not be cordoned is no
// error under force, which does not wait for it.
func Round(ctx context.Context, client kubernetes.Interface, in Observation, p Policy, nodeName string, now time.Time) (Plan, Answers, error) {
	if client == nil {
		return Plan{}, in.Answers, errors.New("drain: no client")
	}
	plan := Decide(in, p, now)
	if plan.Done {
		pods, err := podsOn(ctx, client, nodeName)
		if err != nil {
			return Plan{Reason: ReasonNotObserved, NextCheck: now.Add(p.retryEvery())}, in.Answers, err
		}
		in.Pods = pods
		plan = Decide(in, p, now)
	}
	results, err := Carry(ctx, client, plan)
	in.Answers = in.Answers.After(plan, results, p, now)
	left := Decide(in, p, now)
	left.Done = plan.Done && (err == nil || p.forced(now))
	if plan.Done && left.Done {
		err = nil
	}
	return left, in.Answers, err
}

// podsOn reads the pods of a Node from the API server.
func podsOn(ctx context.Context, client kubernetes.Interface, node string) ([]*corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
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
