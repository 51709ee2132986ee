// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrNodeNotFound is the error of an [Executor.Run] that found no Node of its name. A
	// Node that goes later is the outcome [NodeGone].
	ErrNodeNotFound = errors.New("drain: there is no such node")
	// ErrNotFeasible is the error of an [Executor.Run] that was refused before it changed
	// anything: the policy protects a pod, or an earlier drain's fence was taken away.
	ErrNotFeasible = errors.New("drain: not feasible, and nothing was changed")
)

// UnfinishedError says that a [Executor.Run] ended with pods left that were to go, or
// without knowing.
type UnfinishedError struct {
	// Plan is what was last waited for. Its outcome is [Proceeded] or [GaveUp] if the ladder
	// ended the drain. [Plan.Obstacles] names the pods that no waiting helps.
	Plan Plan
	// Err is what ended the drain: the error of the context, what the API server said,
	// [ErrNodeNotFound], [ErrNotFeasible], or what is wrong with the policy. It is nil if the
	// ladder ended the drain.
	Err error
}

// Error returns the name of the Node, what was left and why.
func (e *UnfinishedError) Error() string {
	if errors.Is(e.Err, ErrNodeNotFound) || errors.Is(e.Err, ErrNotFeasible) {
		return strings.Join(append([]string{e.Err.Error(), "node " + e.Plan.Node}, e.Plan.refusals()...), ": ")
	}
	s := fmt.Sprintf("drain: node %s is not drained", e.Plan.Node)
	if e.Plan.Over() {
		s = fmt.Sprintf("drain: node %s: %s", e.Plan.Node, e.Plan.Outcome)
	}
	if summary := e.Plan.Summary(); summary != "" {
		s += ": " + summary
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns what ended the drain.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Run drains a Node and returns when that is done, when the ladder of the policy ends it, or
// when the context does. It holds its goroutine as long: controllers have
// [Executor.Round] instead.
//
// It watches the Node, the pods on it, and what the policy has a use for; nothing is
// polled. What it may not watch, other than the Node and pods, is not evaluated, and
// the plan says so; nor are budgets, namespaces and DaemonSets as long as the API server
// cannot list them. When watches break, it goes on with what it knows until they are
// back.
//
// A drain that makes no sense is refused before it changes anything, as kubectl drain does:
// an invalid policy ([LadderError], [nodeops.FenceError]), a Node that does not exist
// ([ErrNodeNotFound]), and a pod that the policy protects for ever or a fence that a person took
// away ([ErrNotFeasible]). Budgets are waited for, since their owner may act when the Node is
// fenced. So are pods that come later. The Observer is told of each wait when it begins,
// and the error names what is left in the end.
//
// The error is nil if the outcome is [Drained], [NodeGone] or [Skipped], and otherwise an
// *[UnfinishedError]: with the error of the context if that ended, with that of the API
// server if the Node or its pods may not be seen, or the Node not be fenced. When it
// returns, nothing that it started is left.
func (e Executor) Run(ctx context.Context, nodeName string, p Policy) (Plan, error) {
	plan := Decide(Observation{}, p, e.clock().Now())
	plan.Node = nodeName
	switch {
	case plan.Over():
		return plan, nil
	case e.Client == nil:
		return plan, &UnfinishedError{Plan: plan, Err: ErrNoClient}
	case nodeName == "":
		return plan, &UnfinishedError{Plan: plan, Err: ErrNoNodeName}
	case ctx.Err() != nil:
		return plan, &UnfinishedError{Plan: plan, Err: ctx.Err()}
	}
	if err := errors.Join(p.problems()...); err != nil {
		plan.Reason = ReasonInvalidPolicy
		return plan, &UnfinishedError{Plan: plan, Err: err}
	}
	woken := make(chan struct{}, 1)
	view, err := e.watch(ctx, nodeName, p, func() {
		select {
		case woken <- struct{}{}:
		default: // one call is enough for any number of events
		}
	})
	if err != nil {
		return plan, &UnfinishedError{Plan: plan, Err: err}
	}
	defer view.stop()
	run := run{Executor: e, view: view, node: nodeName, policy: p, plan: plan}
	for next := run.step(ctx); ; next = run.step(ctx) {
		switch {
		case run.err == nil && (run.plan.Outcome == Drained || run.plan.Outcome == NodeGone):
			return run.plan, nil
		case run.err == nil && run.plan.Over():
			return run.plan, &UnfinishedError{Plan: run.plan}
		case ctx.Err() != nil:
			return run.plan, &UnfinishedError{Plan: run.plan, Err: because(ctx.Err(), run.err)}
		case refused(run.err):
			return run.plan, &UnfinishedError{Plan: run.plan, Err: run.err}
		}
		if e.sleep(ctx, woken, next); ctx.Err() != nil {
			return run.plan, &UnfinishedError{Plan: run.plan, Err: because(ctx.Err(), run.err)}
		}
	}
}

// run is a Run under way.
type run struct {
	Executor

	view   *view
	node   string
	uid    types.UID
	policy Policy
	state  State
	// plan is the last one that knew of pods, err what the last round came to.
	plan Plan
	err  error
	// told is what the observer knows.
	told Plan
}

// step makes one round, and returns when to make the next.
func (r *run) step(ctx context.Context) time.Time {
	now := r.clock().Now()
	retry := now.Add(r.policy.retryEvery())
	sources, err := r.view.sources()
	if err != nil {
		r.err = err
		return retry
	}
	in, err := sources.Observe(ctx, r.node, r.state)
	if err != nil {
		r.err = err
		return retry
	}
	if r.uid == "" {
		if r.err = r.begin(ctx, in, now); r.err != nil {
			return retry
		}
	}
	if in.Node != nil && in.Node.UID != r.uid { // another one has its name
		in = Observation{Looked: true, Reach: ReachOf(nil)}
	}
	state, plan, results, err := r.round(ctx, now, r.state, in, r.policy, r.node)
	plan.Node = r.node
	told := plan
	switch {
	case plan.Fence == nil:
	case err == nil: // it was set, and what was observed is older
		told.Fence, told.FencedAt = nil, now
		if len(told.Holds()) > 0 { // something else is waited for
			plan = told
		}
	default: // nothing else is waited for until it is
		told = Plan{Node: r.node, Reason: ReasonNotObserved, Started: plan.Started}
	}
	r.tell(r.told, told, results, err, now)
	r.state, r.err = state, err
	if plan.Reason != ReasonNotObserved {
		r.plan = plan
	}
	if told.Reason != ReasonNotObserved {
		r.told = told
	}
	return plan.NextCheck
}

// begin looks at the Node for the first time, and says why the drain is not begun, or nil. A
// cache may be older than what the caller has just written, so that no drain is refused
// for what the API server does not say.
func (r *run) begin(ctx context.Context, in Observation, now time.Time) error {
	plan, refusal := r.refusal(in, now)
	if refusal != nil {
		bounded, cancel := r.call(ctx)
		defer cancel()
		live, err := Live{Client: r.Client}.Sources(r.policy).Observe(bounded, r.node, State{})
		if err == nil {
			if plan, refusal = r.refusal(live, now); refusal == nil {
				return &SourceError{Source: SourceNodes, Err: ErrNotSynced}
			}
		}
		r.plan = plan
		r.plan.Node = r.node
		return refusal
	}
	r.uid = in.Node.UID
	return nil
}

// refusal returns the first plan, and why the drain is refused, or nil.
func (r *run) refusal(in Observation, now time.Time) (Plan, error) {
	plan := Decide(in, r.policy, now)
	switch {
	case in.Node == nil:
		return plan, ErrNodeNotFound
	case plan.refused():
		return plan, ErrNotFeasible
	default:
		return plan, nil
	}
}

// pause is the least time between two rounds, so that a burst of events is one round, or a
// few. An event after a while without any is acted on at once.
const pause = 5 * time.Millisecond

// sleep returns when something has happened, when it is time, or when the context ends.
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

// refused says whether it is no use to ask again.
func refused(err error) bool {
	if errors.Is(err, ErrNodeNotFound) || errors.Is(err, ErrNotFeasible) {
		return true
	}
	return slices.ContainsFunc(joined(err), func(one error) bool { return apierrors.IsForbidden(one) || apierrors.IsUnauthorized(one) })
}

// because joins the end of a context and what was in the way before it.
func because(end, err error) error {
	if err == nil || end == nil {
		return end
	}
	return fmt.Errorf("%w (%w)", end, err)
}
