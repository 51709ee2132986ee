// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
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
	Reason machinist.Reason `json:"reason,omitempty"`
	// Message is what the API server said, in words for people.
	Message string `json:"message,omitempty"`
	// Until is when the request may be repeated. A stronger one need not wait.
	Until time.Time `json:"until,omitzero"`
	// Tries is how often in a row the request was refused.
	Tries int `json:"tries,omitempty"`
	// Budgets identifies the budgets of the pod, and their versions, when it was
	// asked: if they refused and change, the request may be repeated at once.
	Budgets string `json:"budgets,omitempty"`
}

// holds says whether it is too early for a request.
func (a Answer) holds(want Verdict, p Policy, now time.Time) bool {
	pause := backOff(p, math.MaxInt, "")
	longest := now.Add(max(pause+pause/8, longestRetryAfter)) // what lies beyond was said by another clock
	return a.Asked.strength() >= want.strength() && a.Until.After(now) && !a.Until.After(longest)
}

// row waits until the request may be repeated.
func (a Answer) row() Row {
	return Row{Verdict: Wait, Reason: cmp.Or(a.Reason, ReasonRefused), Message: a.Message, Until: a.Until}
}

// next reads what a request came to that followed another one. A result without
// request changes nothing.
func (a Answer) next(r Result, p Policy, now time.Time) Answer {
	if r.Row.Verdict.strength() == 0 {
		return a
	}
	at := r.At
	if !recorded.Known(at, now) {
		at = now
	}
	reason, message, after := AnswerOf(r.Err)
	next := Answer{Asked: r.Row.Verdict, Reason: reason, Message: message, Budgets: r.Row.Versions}
	if r.Err == nil {
		next.Until = at.Add(p.retryEvery())
		return next
	}
	next.Tries = 1
	if a.Asked == next.Asked {
		next.Tries += min(max(0, a.Tries), math.MaxInt16)
	}
	next.Until = at.Add(max(backOff(p, next.Tries, r.Row.UID), after))
	return next
}

// backOff returns the pause after so many refusals in a row: it doubles twice. Up to a
// tenth more, different for each pod, keeps them from being asked for in step.
func backOff(p Policy, tries int, pod types.UID) time.Duration {
	pause := min(p.retryEvery(), math.MaxInt64/8) << min(max(0, tries-1), 2)
	if pod == "" {
		return pause
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod))
	return pause + pause/1000*time.Duration(hash.Sum32()%101)
}

// AnswerOf reads what a request to evict or delete a pod came to: the reason, what
// the API server said, and how long it asks to wait, at most a minute. It decides by
// the types of the error, never by its text. Nil means that the request was accepted:
// the pod is on its way out, and not gone yet.
func AnswerOf(err error) (reason machinist.Reason, message string, retryAfter time.Duration) {
	if err == nil {
		return ReasonTerminating, "", 0
	}
	reason, message = reasonOf(err), err.Error()
	if after, ok := apierrors.SuggestsClientDelay(err); ok && after > 0 {
		retryAfter = time.Duration(min(after, int(longestRetryAfter/time.Second))) * time.Second
	}
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		message = cmp.Or(cause.Message, message) // the cause names the budget
	}
	return reason, clip(strings.Join(strings.Fields(message), " "), longestMessage), retryAfter
}

func reasonOf(err error) machinist.Reason {
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), aboutBudget(err):
		return ReasonBudget
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespace
	case apierrors.IsTooManyRequests(err):
		return ReasonThrottled
	case apierrors.IsNotFound(err):
		return ReasonGone
	case apierrors.IsConflict(err):
		return ReasonConflict
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case unanswered(err):
		return ReasonUnanswered
	default:
		return ReasonRefused
	}
}

// aboutBudget says whether an error is about a budget that the API server could not
// charge, such as one with too many evictions under way.
func aboutBudget(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	return details.Group == policyv1.GroupName && details.Kind == "poddisruptionbudget"
}

// unanswered says whether nobody knows what became of a request.
func unanswered(err error) bool {
	_, network := errors.AsType[interface { // as of package net, whose import a pure file has no use for
		error
		Timeout() bool
	}](err)
	return network || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		errors.Is(err, context.Canceled) // that of a deadline has a timeout
}

// longestMessage bounds what is kept of a message, in bytes.
const longestMessage = 256

// clip cuts what is too long, between two characters.
func clip(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	end := longest - len("...")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
