// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// The errors of an [Executor.Run] that ended before the Node was drained. If a rung of the ladder ended the
// drain, the outcome in [UnfinishedError] is [drain.Proceeded] or [drain.GaveUp]. If the Node does not exist,
// apierrors.IsNotFound is true; a Node that is deleted during the drain has the outcome [drain.NodeGone].
var (
	// ErrNotFeasible means that the drain was refused before any change: the policy protects a pod, or
	// another client has uncordoned the Node.
	ErrNotFeasible = errors.New("drain: not feasible, and nothing was changed")
	// ErrObstacles means that only pods are left for which waiting does not help: the policy protects
	// them, or the API server refuses the requests for good. A [RefusedError] says which request.
	ErrObstacles = errors.New("drain: waiting does not help the pods that are left")
)

// The errors of a drain that a rung of the ladder has ended.
var (
	errProceeded = errors.New("drain: Proceeded with pods or volumes left")
	errGaveUp    = errors.New("drain: GaveUp with pods left")
)

// RefusedError is the error of a request that the API server refuses for good: the client has no right
// to it, or it is invalid.
type RefusedError struct {
	// Verb and Resource are those of the right, such as "create" and "pods/eviction".
	Verb, Resource string
	// Pod is the namespace and name of the pod. Empty for other requests.
	Pod string
	// Err is the error of the API server.
	Err error
}

// Error returns the request and the text of the API server.
func (e *RefusedError) Error() string {
	of := ""
	if e.Pod != "" {
		of = " of pod " + e.Pod
	}
	return fmt.Sprintf("%s %s%s: %v", e.Verb, e.Resource, of, e.Err)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusal returns an error that the API server repeats for each attempt as a [RefusedError], and other errors
// unchanged.
func refusal(verb, resource, pod string, err error) error {
	if !refused(err) {
		return err
	}
	return &RefusedError{Verb: verb, Resource: resource, Pod: pod, Err: err}
}

// refused reports whether the API server refuses a request for good.
func refused(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// UnfinishedError is the error of an [Executor.Run] that ended before the Node was drained.
type UnfinishedError struct {
	// Decision is the last one. Its outcome is [drain.Proceeded] or [drain.GaveUp] if the ladder
	// ended the drain. [drain.Decision.Obstacles] has the pods for which waiting does not help.
	Decision drain.Decision
	// Err is why the drain ended: the error of the context, of the API server or of the policy, or one
	// of the errors of this package.
	Err error
}

// mostHolds is how many holds the text of an error has.
const mostHolds = 5

// Error returns the name of the Node, the holds that are left, and Err.
func (e *UnfinishedError) Error() string {
	left := e.Decision.Holds()
	var s string
	switch {
	case e.Decision.Node == "" && e.Err != nil:
		return e.Err.Error()
	case errors.Is(e.Err, ErrNotFeasible), errors.Is(e.Err, ErrObstacles):
		s, left = e.Err.Error()+": node "+e.Decision.Node, e.Decision.Refusals()
	case apierrors.IsNotFound(e.Err):
		s, left = e.Err.Error(), nil
	case e.Decision.Over():
		s = e.Err.Error() + ": node " + e.Decision.Node
	default:
		s = fmt.Sprintf("drain: node %s is not drained", e.Decision.Node)
	}
	var holds []string
	for _, hold := range left[:min(len(left), mostHolds)] {
		holds = append(holds, hold.String())
	}
	if more := len(left) - len(holds); more > 0 {
		holds = append(holds, fmt.Sprintf("%d more", more))
	}
	if len(holds) > 0 {
		s += ": " + strings.Join(holds, "; ")
	}
	if e.Err != nil && !strings.HasPrefix(s, e.Err.Error()) {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Run drains a Node. It returns when the Node is drained, when the ladder of the policy ends the
// drain, or when the context ends. Controllers use [Executor.Pass] instead, which does not block.
//
// Run watches the Node, its pods, and the lists that the policy needs. What the client may not watch, it
// reads again at [drain.Decision.NextCheck] and after the RetryEvery of the policy. An optional list that the
// client may not read is in [drain.Decision.NotEvaluated]. So are PodDisruptionBudgets and DaemonSets
// while the API server cannot list them. While watches are broken, Run continues with the last known
// objects.
//
// Run refuses a drain that cannot end before it changes anything: with an invalid policy, and for a
// Node that does not exist. It also refuses it if the policy protects a pod or another client has
// uncordoned the Node ([ErrNotFeasible]). It waits for PodDisruptionBudgets, and ends when only pods are
// left for which waiting does not help ([ErrObstacles]).
//
// The error is nil if the outcome is [drain.Drained] or [drain.NodeGone], and also if the drain only
// does not wait for what the policy skips, such as pods that have been terminating for longer than
// SkipTerminatingAfter. Otherwise it is an *[UnfinishedError]. Run leaves no goroutine.
func (e Executor) Run(ctx context.Context, nodeName string, p drain.Policy) (drain.Decision, error) {
	d := drain.Decide(drain.Observation{}, p, e.clock().Now())
	d.Node = nodeName
	if err := errors.Join(usable(e.Client, nodeName), p.Validate(), ctx.Err()); err != nil {
		return d, &UnfinishedError{Decision: d, Err: err}
	}
	woken := make(chan struct{}, 1)
	view := e.watch(ctx, nodeName, p, func() {
		select {
		case woken <- struct{}{}:
		default: // one call is enough for any number of events
		}
	})
	defer view.stop()
	run := run{Executor: e, view: view, node: nodeName, policy: p, decision: d}
	for next := run.step(ctx); ; next = run.step(ctx) {
		switch {
		case run.err == nil && run.decision.Over():
			if err := unfinished(run.decision); err != nil {
				return run.decision, &UnfinishedError{Decision: run.decision, Err: err}
			}
			return run.decision, nil
		case ctx.Err() != nil:
			return run.decision, &UnfinishedError{Decision: run.decision, Err: because(ctx.Err(), run.err)}
		case refused(run.err), errors.Is(run.err, ErrNotFeasible), !run.begun && apierrors.IsNotFound(run.err):
			return run.decision, &UnfinishedError{Decision: run.decision, Err: run.err}
		case run.err == nil && stuck(run.decision):
			return run.decision, &UnfinishedError{Decision: run.decision, Err: run.obstacles()}
		}
		if e.sleep(ctx, woken, next); ctx.Err() != nil {
			return run.decision, &UnfinishedError{Decision: run.decision, Err: because(ctx.Err(), run.err)}
		}
	}
}

// run is the state of one Run.
type run struct {
	Executor

	view   *view
	node   string
	uid    types.UID
	begun  bool
	policy drain.Policy
	state  drain.State
	// decision is the last one with an observation. err is the error of the last pass.
	decision drain.Decision
	err      error
	// lastReported is the last decision given to the Observer, with the pods of its observation.
	lastReported drain.Decision
	pods         []*corev1.Pod
	// refusals has the requests for pods that the API server has refused for good.
	refusals map[podID]error
}

// step makes one pass and returns when to make the next.
func (r *run) step(ctx context.Context) time.Time {
	now := r.clock().Now()
	unknown := drain.Decide(drain.Observation{}, r.policy, now)
	in, err := Observe(ctx, r.view, r.node, r.policy, r.state)
	if err == nil && !r.begun {
		err = r.begin(ctx, in, now)
	}
	if err != nil {
		r.err = err
		return unknown.NextCheck
	}
	if in.Node != nil && in.Node.UID != r.uid { // another Node of that name
		in = drain.Observation{Looked: true}
	}
	state, d, results, err := r.pass(ctx, now, r.state, in, r.policy, r.node)
	d.Node = r.node
	reported := d
	switch {
	case d.Cordon == nil:
	case err == nil: // the cordon was set after the observation
		reported.Cordon, reported.CordonedAt = nil, now
		if len(reported.Holds()) > 0 {
			d = reported
		}
	default: // the drain waits only for the cordon
		reported = drain.Decision{Node: r.node, Reason: drain.ReasonNotObserved, Started: d.Started}
	}
	r.report(r.lastReported, reported, results, err, now, r.pods, in.Pods.Items)
	r.remember(results)
	r.state, r.err, r.pods = state, err, in.Pods.Items
	if d.Reason != drain.ReasonNotObserved {
		r.decision = d
		if r.Decided != nil {
			r.Decided(d)
		}
	}
	if reported.Reason != drain.ReasonNotObserved {
		r.lastReported = reported
	}
	if r.view.polls() {
		return machinist.Earliest(d.NextCheck, unknown.NextCheck)
	}
	return d.NextCheck
}

// remember adds the requests that the API server has refused for good.
func (r *run) remember(results []drain.Result) {
	for _, result := range results {
		verb, resource := "delete", "pods"
		if result.Row.Action == drain.Evict {
			verb, resource = "create", "pods/eviction"
		}
		row := result.Row
		if refused(result.Err) {
			if r.refusals == nil {
				r.refusals = map[podID]error{}
			}
			r.refusals[podID{row.Namespace, row.Name, row.UID}] = refusal(verb, resource, row.Namespace+"/"+row.Name, result.Err)
		}
	}
}

// stuck reports whether a drain waits only for pods for which waiting does not help.
func stuck(d drain.Decision) bool {
	left := len(d.Refusals())
	return left > 0 && len(d.Gates) == 0 && left == len(d.Holds())
}

// obstacles returns [ErrObstacles] with the first refused request for a pod that is left.
func (r *run) obstacles() error {
	for _, row := range r.decision.Obstacles() {
		if err := r.refusals[podID{row.Namespace, row.Name, row.UID}]; err != nil {
			return fmt.Errorf("%w: %w", ErrObstacles, err)
		}
	}
	return ErrObstacles
}

// unfinished returns why a drain has ended before the Node was drained, or nil: also for what the policy does
// not wait for, without a rung of the ladder.
func unfinished(d drain.Decision) error {
	ended := slices.ContainsFunc(d.Rungs, func(r drain.Rung) bool { return r.Action == drain.Proceed })
	switch {
	case d.Outcome == drain.GaveUp:
		return errGaveUp
	case d.Outcome == drain.Proceeded && ended:
		return errProceeded
	default:
		return nil
	}
}

// begin makes the first decision and returns why the drain is refused, or nil. The cache may be
// older than the last write of the caller, so a refusal is confirmed with the API server.
func (r *run) begin(ctx context.Context, in drain.Observation, now time.Time) error {
	d, refusal := r.refusal(in, now)
	if refusal != nil {
		bounded, cancel := r.call(ctx)
		defer cancel()
		live, err := Observe(bounded, r.Client, r.node, r.policy, drain.State{})
		if err == nil {
			if d, refusal = r.refusal(live, now); refusal == nil {
				return observeError("nodes", objects.ErrNotListed)
			}
		}
		r.decision = d
		r.decision.Node = r.node
		return refusal
	}
	r.uid, r.begun = in.Node.UID, true
	return nil
}

// refusal returns the first decision, and why the drain is refused, or nil.
func (r *run) refusal(in drain.Observation, now time.Time) (drain.Decision, error) {
	d := drain.Decide(in, r.policy, now)
	switch {
	case in.Node == nil:
		return d, fmt.Errorf("drain: there is no such node: %w", notFound(r.node))
	case len(d.Refusals()) > 0:
		return d, ErrNotFeasible
	default:
		return d, nil
	}
}

// pause is the shortest time between two passes, so that a burst of events causes few passes. After
// a longer time without events, the next event causes a pass at once.
const pause = 5 * time.Millisecond

// sleep returns after an event, at the time until, or when the context ends.
func (e Executor) sleep(ctx context.Context, woken <-chan struct{}, until time.Time) {
	burst := time.NewTimer(pause)
	defer burst.Stop()
	select {
	case <-ctx.Done():
		return
	case <-burst.C:
	}
	var due <-chan time.Time
	if !until.IsZero() {
		timer := e.clock().NewTimer(max(until.Sub(e.clock().Now()), time.Millisecond))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-woken:
	case <-due:
	}
}

// because joins the error of a context and the error before it.
func because(end, err error) error {
	if err == nil || end == nil {
		return end
	}
	return fmt.Errorf("%w (%w)", end, err)
}
