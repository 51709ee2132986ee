// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Pass makes one pass over the drain of a Node: it decides, applies the decision, and decides again
// with the responses of the API server. It returns the next state and the last decision. Pods of
// the observation may come from a cache, which may lack pods that were bound just before the
// cordon. So the end of a drain is confirmed by a list of the pods from the API server.
//
// The error is that of [Executor.Apply] or of the list; the drain has then not ended. An error of
// the cordon is ignored when the ladder has ended.
//
// Pass takes as long as its requests. Call it again when an observed object changes, or at
// NextCheck of the decision. The Observer receives the requests; callers that keep the last
// decision get everything else from [drain.Compare].
func (e Executor) Pass(ctx context.Context, s drain.State, in drain.Observation, p drain.Policy, nodeName string) (drain.State, drain.Decision, error) {
	now := e.clock().Now()
	next, d, results, err := e.pass(ctx, now, s, in, p, nodeName)
	e.report(drain.Decision{}, drain.Decision{Node: nodeName, Reason: drain.ReasonNotObserved}, results, err, now, in.Pods.Items)
	return next, d, err
}

// Observer receives the progress of drains. The goroutine that calls the [Executor] calls it, one
// call at a time. The drain waits while it runs.
type Observer interface {
	Observe(p drain.Progress)
}

// ObserverFunc is a function that is an [Observer].
type ObserverFunc func(p drain.Progress)

// Observe implements [Observer].
func (f ObserverFunc) Observe(p drain.Progress) { f(p) }

// report sends the observer the progress between two decisions, and the error of the cordon.
func (e Executor) report(before, after drain.Decision, results []drain.Result, err error, now time.Time, observed ...[]*corev1.Pod) {
	if e.Observer == nil {
		return
	}
	pods := map[podID]*corev1.Pod{}
	for _, pod := range slices.Concat(observed...) {
		if pod != nil {
			pods[podID{pod.Namespace, pod.Name, pod.UID}] = pod
		}
	}
	var cordon cordonError
	if errors.As(err, &cordon) {
		e.Observer.Observe(drain.Progress{
			Type: drain.ProgressCordoned, Time: now, Node: after.Node, Subject: "node/" + after.Node, Reason: drain.ReasonNotCordoned, Err: cordon,
		})
	}
	for _, one := range drain.Compare(before, after, results, now) {
		if one.Row != nil {
			one.Pod = pods[podID{one.Row.Namespace, one.Row.Name, one.Row.UID}]
		}
		e.Observer.Observe(one)
	}
}

// podID identifies a pod.
type podID struct {
	namespace, name string
	uid             types.UID
}

// pass is [Executor.Pass] at a given time. It also returns the results of the requests.
func (e Executor) pass(ctx context.Context, now time.Time, s drain.State, in drain.Observation, p drain.Policy, nodeName string) (drain.State, drain.Decision, []drain.Result, error) {
	unknown := drain.Decide(drain.Observation{}, p, now)
	unknown.Node = nodeName
	if err := usable(e.Client, nodeName); err != nil {
		return s, unknown, nil, err
	}
	next, d := drain.Step(s, in, p, now)
	if d.Outcome == drain.Drained || d.Outcome == drain.Proceeded {
		bounded, cancel := e.call(ctx)
		pods, err := objects.List[*corev1.Pod](bounded, e.Client, objects.OnNode, d.Node)
		if cancel(); err != nil {
			return s, unknown, nil, observeError(sourcePods, refusal("list", "pods", "", err))
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
	case errors.As(err, new(cordonError)):
		err = nil
	}
	return next, d, results, err
}

// confirm replaces the pods by those of a list from the API server. With new pods the other lists
// are incomplete.
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
