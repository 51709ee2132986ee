// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
//
// A round takes no longer than its requests. It is for callers with a queue, who come
// back when something observed changes, or at the plan's NextCheck, and hold no
// goroutine in between. The observer is told of the requests; [Progress] tells the rest
// to whoever keeps the last plan.
func (e Executor) Round(ctx context.Context, s State, in Observation, p Policy, nodeName string) (State, Plan, error) {
	now := e.clock().Now()
	next, plan, results, err := e.round(ctx, now, s, in, p, nodeName)
	e.tell(Plan{}, Plan{Node: nodeName, Reason: ReasonNotObserved}, results, err, now)
	return next, plan, err
}

// tell tells the observer what has happened between two plans, and if the Node could
// not be fenced.
func (e Executor) tell(before, after Plan, results []Result, err error, now time.Time) {
	if e.Observer == nil {
		return
	}
	if fence, failed := errors.AsType[*FenceError](err); failed {
		e.Observer.Observe(Event{
			Type: EventFenced, Time: now, Node: after.Node, Subject: nodeSubject(after.Node), Reason: ReasonNotFenced, Err: fence,
		})
	}
	for _, event := range Progress(before, after, results, now) {
		e.Observer.Observe(event)
	}
}

// round is [Executor.Round] at a time. It returns what the requests came to as well.
func (e Executor) round(ctx context.Context, now time.Time, s State, in Observation, p Policy, nodeName string) (State, Plan, []Result, error) {
	unknown := Plan{Node: nodeName, Reason: ReasonNotObserved, NextCheck: now.Add(p.retryEvery())}
	if e.Client == nil {
		return s, unknown, nil, ErrNoClient
	}
	next, plan := Step(s, in, p, now)
	if plan.Outcome == Drained || plan.Outcome == Proceeded {
		pods, err := e.podsOn(ctx, plan.Node)
		if err != nil {
			return s, unknown, nil, err
		}
		in.confirm(pods)
		next, plan = Step(s, in, p, now)
	}
	results, fenced, err := e.carry(ctx, plan)
	switch {
	case !plan.Over():
		in.Results = results
		next, plan = Step(next, in, p, now)
		next.fencedBy(fenced, p, now)
	case ctx.Err() != nil:
		return s, unknown, results, err
	case errors.As(err, new(*FenceError)):
		err = nil
	}
	return next, plan, results, err
}

// confirm replaces the pods by those that were read just now. If there are any that were
// not there before, the other sources were not asked for what belongs to them.
func (in *Observation) confirm(pods []*corev1.Pod) {
	known := make(map[types.UID]struct{}, len(in.Pods.Items))
	for _, pod := range in.Pods.Items {
		if pod != nil {
			known[pod.UID] = struct{}{}
		}
	}
	for _, pod := range pods {
		if _, is := known[pod.UID]; !is {
			in.Budgets.Complete, in.Namespaces.Complete, in.DaemonSets.Complete = false, false, false
			in.Claims.Complete, in.Volumes.Complete = false, false
		}
	}
	in.Pods = All(pods...)
}

// podsOn reads the pods of a Node from the API server.
func (e Executor) podsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	ctx, cancel := e.call(ctx)
	defer cancel()
	return Live{Client: e.Client}.PodsOn(ctx, node)
}
