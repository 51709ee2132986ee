// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
)

// Pass makes one pass over the drain of a Node: it decides, applies the decision, and decides
// again with the answers of the API server. It returns the next state and the last decision.
// The pods of the observation may come from a cache, which need not show what was bound to the
// Node just before it was cordoned. So a Node that looks drained is confirmed by a list of its
// pods from the API server.
//
// An error says that the pass could not be carried out, as of [Executor.Apply] or of the list;
// then the drain is not over. An error of the cordon is no error when the ladder has ended.
//
// Pass takes no longer than its requests. Callers with a queue come back when something
// observed changes, or at the decision's NextCheck. The Observer is told of the requests;
// [drain.Compare] tells the rest to callers that keep the last decision.
func (e Executor) Pass(ctx context.Context, s drain.State, in drain.Observation, p drain.Policy, nodeName string) (drain.State, drain.Decision, error) {
	now := e.clock().Now()
	next, d, results, err := e.pass(ctx, now, s, in, p, nodeName)
	e.report(drain.Decision{}, drain.Decision{Node: nodeName, Reason: drain.ReasonNotObserved}, results, err, now)
	return next, d, err
}

// Observer is told of the progress of drains. It is called from the goroutine that
// calls the [Executor], one time after the other. The drain waits while it runs.
type Observer interface {
	Observe(p drain.Progress)
}

// report tells the observer what has happened between two decisions, and if the Node could
// not be cordoned.
func (e Executor) report(before, after drain.Decision, results []drain.Result, err error, now time.Time) {
	if e.Observer == nil {
		return
	}
	if cordon, failed := errors.AsType[*CordonError](err); failed {
		e.Observer.Observe(drain.Progress{
			Type: drain.ProgressCordoned, Time: now, Node: after.Node, Subject: "node/" + after.Node, Reason: drain.ReasonNotCordoned, Err: cordon,
		})
	}
	for _, one := range drain.Compare(before, after, results, now) {
		e.Observer.Observe(one)
	}
}

// pass is [Executor.Pass] at a time. It returns what the requests came to as well.
func (e Executor) pass(ctx context.Context, now time.Time, s drain.State, in drain.Observation, p drain.Policy, nodeName string) (drain.State, drain.Decision, []drain.Result, error) {
	unknown := drain.Decide(drain.Observation{}, p, now)
	unknown.Node = nodeName
	if err := e.usable(nodeName); err != nil {
		return s, unknown, nil, err
	}
	next, d := drain.Step(s, in, p, now)
	if d.Outcome == drain.Drained || d.Outcome == drain.Proceeded {
		bounded, cancel := e.call(ctx)
		pods, err := Live{Client: e.Client}.PodsOn(bounded, d.Node)
		if cancel(); err != nil {
			return s, unknown, nil, err
		}
		confirm(&in, pods)
		next, d = drain.Step(s, in, p, now)
	}
	results, cordoned, err := e.apply(ctx, d)
	switch {
	case !d.Over():
		in.Results = results
		next, d = drain.Step(next, in, p, now)
		next = next.Cordoned(cordoned, p, now)
	case ctx.Err() != nil:
		return s, unknown, results, err
	case errors.As(err, new(*CordonError)):
		err = nil
	}
	return next, d, results, err
}

// confirm replaces the pods by those that were read just now. If there are any that were
// not there before, the other lists do not cover what belongs to them.
func confirm(in *drain.Observation, pods []*corev1.Pod) {
	known := make(map[types.UID]struct{}, len(in.Pods.Items))
	for _, pod := range in.Pods.Items {
		if pod != nil {
			known[pod.UID] = struct{}{}
		}
	}
	for _, pod := range pods {
		if _, is := known[pod.UID]; !is {
			in.Budgets.Complete, in.DaemonSets.Complete = false, false
			in.Claims.Complete, in.Volumes.Complete = false, false
		}
	}
	in.Pods = drain.All(pods...)
}
