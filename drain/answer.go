// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Answers are what the API server last said about each pod, by UID: a plain
// value that the caller keeps between rounds. Losing it costs a repeated
// request, never safety. The nil map is ready to use.
type Answers map[types.UID]Answer

// Answer is what the API server last said about one pod.
type Answer struct {
	// Asked is the request: [Evict], [Delete] or [ForceDelete].
	Asked Verdict
	// Reason is what it came to: [ReasonTerminating] if the request was accepted.
	Reason Reason
	// Message is what the API server said, in words for people.
	Message string
	// Until is when the request may be repeated. A stronger one need not wait.
	Until time.Time
}

// After returns the answers after a round was carried out at now: those about
// pods that the plan does not know any more are dropped, unless the plan knew
// nothing at all. The receiver is not changed.
func (a Answers) After(plan Plan, results []Result, p Policy, now time.Time) Answers {
	next := make(Answers, len(plan.Rows))
	if plan.Reason == ReasonNotObserved {
		maps.Copy(next, a)
	}
	for _, r := range plan.Rows {
		if old, ok := a[r.UID]; ok {
			next[r.UID] = old
		}
	}
	for _, r := range results {
		next[r.Row.UID] = answer(r, p, now)
	}
	return next
}

// holds says whether it is too early for a request.
func (a Answer) holds(want Verdict, p Policy, now time.Time) bool {
	longest := now.Add(max(p.retryEvery(), longestRetryAfter)) // what lies beyond was said by another clock
	return a.Asked.strength() >= want.strength() && a.Until.After(now) && !a.Until.After(longest)
}

// row waits until the request may be repeated.
func (a Answer) row() Row {
	return Row{Verdict: Wait, Reason: cmp.Or(a.Reason, ReasonRefused), Message: a.Message, Until: a.Until}
}

// answer reads what a request came to. It decides by the types of the API
// server's error, never by its text.
func answer(r Result, p Policy, now time.Time) Answer {
	a := Answer{Asked: r.Row.Verdict, Reason: ReasonTerminating, Until: now.Add(p.retryEvery())}
	if r.Err == nil {
		return a
	}
	a.Reason, a.Message = ReasonRefused, r.Err.Error()
	if after, ok := apierrors.SuggestsClientDelay(r.Err); ok && after > 0 {
		wanted := time.Duration(min(after, int(longestRetryAfter/time.Second))) * time.Second
		a.Until = now.Add(max(p.retryEvery(), wanted))
	}
	switch {
	case apierrors.HasStatusCause(r.Err, policyv1.DisruptionBudgetCause):
		cause, _ := apierrors.StatusCause(r.Err, policyv1.DisruptionBudgetCause)
		a.Reason, a.Message = ReasonBudget, cmp.Or(cause.Message, a.Message) // the cause names the budget
	case apierrors.HasStatusCause(r.Err, corev1.NamespaceTerminatingCause):
		a.Reason = ReasonNamespace
	case apierrors.IsTooManyRequests(r.Err):
		a.Reason = ReasonThrottled
	case apierrors.IsNotFound(r.Err):
		a.Reason = ReasonGone
	case apierrors.IsConflict(r.Err):
		a.Reason = ReasonConflict
	case apierrors.IsForbidden(r.Err):
		a.Reason = ReasonForbidden
	}
	return a
}
