// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

var (
	// ErrNodeNotFound means that the Node of an [Executor.Run] does not exist. A Node that is
	// deleted during the drain has the outcome [drain.NodeGone].
	ErrNodeNotFound = errors.New("drain: there is no such node")
	// ErrNotFeasible means that an [Executor.Run] was refused before any change: the policy
	// protects a pod, or another client has uncordoned the Node.
	ErrNotFeasible = errors.New("drain: not feasible, and nothing was changed")
)

// UnfinishedError is the error of an [Executor.Run] that ended before the Node was drained.
type UnfinishedError struct {
	// Decision is the last one. Its outcome is [drain.Proceeded] or [drain.GaveUp] if the ladder
	// ended the drain. [drain.Decision.Obstacles] has the pods for which waiting does not help.
	Decision drain.Decision
	// Err is why the drain ended: the error of the context, of the API server or of the policy,
	// [ErrNodeNotFound], or [ErrNotFeasible]. It is nil if the ladder ended the drain.
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
	case errors.Is(e.Err, ErrNodeNotFound), errors.Is(e.Err, ErrNotFeasible):
		s, left = e.Err.Error()+": node "+e.Decision.Node, e.Decision.Refusals()
	case e.Decision.Over():
		s = fmt.Sprintf("drain: node %s: %s", e.Decision.Node, e.Decision.Outcome)
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
// Run watches the Node, its pods, and the lists that the policy needs. A list that the client may
// not watch is in [drain.Decision.NotEvaluated]. So are PodDisruptionBudgets and DaemonSets while
// the API server cannot list them. While watches are broken, Run continues with the last known
// objects.
//
// Run refuses a drain that cannot end before it changes anything: with an invalid policy, and for a
// Node that does not exist ([ErrNodeNotFound]). It also refuses it if the policy protects a pod or
// another client has uncordoned the Node ([ErrNotFeasible]). It waits for PodDisruptionBudgets, and
// for pods that are created later.
//
// The error is nil if the outcome is [drain.Drained] or [drain.NodeGone], and an *[UnfinishedError]
// otherwise. Run leaves no goroutine.
func (e Executor) Run(ctx context.Context, nodeName string, p drain.Policy) (drain.Decision, error) {
	d := drain.Decide(drain.Observation{}, p, e.clock().Now())
	d.Node = nodeName
	if err := errors.Join(usable(e.Client, nodeName), p.Validate(), ctx.Err()); err != nil {
		return d, &UnfinishedError{Decision: d, Err: err}
	}
	woken := make(chan struct{}, 1)
	view, err := e.watch(ctx, nodeName, p, func() {
		select {
		case woken <- struct{}{}:
		default: // one call is enough for any number of events
		}
	})
	if err != nil {
		return d, &UnfinishedError{Decision: d, Err: err}
	}
	defer view.stop()
	run := run{Executor: e, view: view, node: nodeName, policy: p, decision: d}
	for next := run.step(ctx); ; next = run.step(ctx) {
		switch {
		case run.err == nil && (run.decision.Outcome == drain.Drained || run.decision.Outcome == drain.NodeGone):
			return run.decision, nil
		case run.err == nil && run.decision.Over():
			return run.decision, &UnfinishedError{Decision: run.decision}
		case ctx.Err() != nil:
			return run.decision, &UnfinishedError{Decision: run.decision, Err: because(ctx.Err(), run.err)}
		case refused(run.err):
			return run.decision, &UnfinishedError{Decision: run.decision, Err: run.err}
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
	policy drain.Policy
	state  drain.State
	// decision is the last one with an observation. err is the error of the last pass.
	decision drain.Decision
	err      error
	// lastReported is the last decision given to the Observer.
	lastReported drain.Decision
}

// step makes one pass and returns when to make the next.
func (r *run) step(ctx context.Context) time.Time {
	now := r.clock().Now()
	unknown := drain.Decide(drain.Observation{}, r.policy, now)
	in, err := r.view.observe(ctx, r.node, r.policy, r.state)
	if err == nil && r.uid == "" {
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
	r.report(r.lastReported, reported, results, err, now)
	r.state, r.err = state, err
	if d.Reason != drain.ReasonNotObserved {
		r.decision = d
		if r.Decided != nil {
			r.Decided(d)
		}
	}
	if reported.Reason != drain.ReasonNotObserved {
		r.lastReported = reported
	}
	return d.NextCheck
}

// begin makes the first decision and returns why the drain is refused, or nil. The cache may be
// older than the last write of the caller, so a refusal is confirmed with the API server.
func (r *run) begin(ctx context.Context, in drain.Observation, now time.Time) error {
	d, refusal := r.refusal(in, now)
	if refusal != nil {
		bounded, cancel := r.call(ctx)
		defer cancel()
		live, err := Observe(bounded, Live{Client: r.Client}, r.node, r.policy, drain.State{})
		if err == nil {
			if d, refusal = r.refusal(live, now); refusal == nil {
				return observeError("nodes", objects.ErrNotListed)
			}
		}
		r.decision = d
		r.decision.Node = r.node
		return refusal
	}
	r.uid = in.Node.UID
	return nil
}

// refusal returns the first decision, and why the drain is refused, or nil.
func (r *run) refusal(in drain.Observation, now time.Time) (drain.Decision, error) {
	d := drain.Decide(in, r.policy, now)
	switch {
	case in.Node == nil:
		return d, ErrNodeNotFound
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

// refused reports whether another attempt has the same error.
func refused(err error) bool {
	return errors.Is(err, ErrNodeNotFound) || errors.Is(err, ErrNotFeasible) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// because joins the error of a context and the error before it.
func because(end, err error) error {
	if err == nil || end == nil {
		return end
	}
	return fmt.Errorf("%w (%w)", end, err)
}
