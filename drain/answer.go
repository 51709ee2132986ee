// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Result is what one request of a round came to.
type Result struct {
	// Row that was carried out.
	Row Row
	// Err of the API server, or nil.
	Err error
	// At is when the request was made. Zero means when the result is observed.
	At time.Time
}

// Answer is what the API server last said about one pod.
type Answer struct {
	// Asked is the request: [Evict], [Delete] or [ForceDelete].
	Asked Verdict `json:"asked,omitempty"`
	// Reason is what it came to: [ReasonTerminating] if the request was accepted.
	Reason Reason `json:"reason,omitempty"`
	// Message is what the API server said, in words for people.
	Message string `json:"message,omitempty"`
	// Until is when the request may be repeated. A stronger one need not wait.
	Until time.Time `json:"until,omitzero"`
	// Tries is how often the request was refused so far.
	Tries int `json:"tries,omitempty"`
	// Budgets identifies the budgets of the pod, and their versions, at the time of a
	// refusal: when they change the request may be repeated at once.
	Budgets string `json:"budgets,omitempty"`
}

// holds says whether it is too early for a request.
func (a Answer) holds(want Verdict, p Policy, now time.Time) bool {
	longest := now.Add(max(4*p.retryEvery(), longestRetryAfter)) // what lies beyond was said by another clock
	return a.Asked.strength() >= want.strength() && a.Until.After(now) && !a.Until.After(longest)
}

// row waits until the request may be repeated.
func (a Answer) row() Row {
	return Row{Verdict: Wait, Reason: cmp.Or(a.Reason, ReasonRefused), Message: a.Message, Until: a.Until}
}

// answer reads what a request came to.
func answer(r Result, p Policy, now time.Time) Answer {
	reason, message, after := AnswerOf(r.Err)
	return Answer{Asked: r.Row.Verdict, Reason: reason, Message: message, Until: now.Add(max(p.retryEvery(), after))}
}

// AnswerOf reads what a request to evict or delete a pod came to: the reason, what
// the API server said, and how long it asks to wait, at most a minute. It decides by
// the types of the error, never by its text. Nil means that the request was accepted:
// the pod is on its way out, and not gone yet.
func AnswerOf(err error) (reason Reason, message string, retryAfter time.Duration) {
	if err == nil {
		return ReasonTerminating, "", 0
	}
	reason, message = ReasonRefused, err.Error()
	if after, ok := apierrors.SuggestsClientDelay(err); ok && after > 0 {
		retryAfter = time.Duration(min(after, int(longestRetryAfter/time.Second))) * time.Second
	}
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		cause, _ := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
		reason, message = ReasonBudget, cmp.Or(cause.Message, message) // the cause names the budget
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		reason = ReasonNamespace
	case apierrors.IsTooManyRequests(err):
		reason = ReasonThrottled
	case apierrors.IsNotFound(err):
		reason = ReasonGone
	case apierrors.IsConflict(err):
		reason = ReasonConflict
	case apierrors.IsForbidden(err):
		reason = ReasonForbidden
	}
	return reason, message, retryAfter
}
