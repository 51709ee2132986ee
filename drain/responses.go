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

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

// longestRetryAfter is the longest pause that the API server can request.
const longestRetryAfter = time.Minute

// recordResults returns the last response for each pod after the requests of the last step.
func recordResults(before map[types.UID]response, results []Result, every time.Duration, now time.Time) map[types.UID]response {
	for _, result := range results {
		id := result.Row.id()
		if id == "" || !result.Row.Action.IsRequest() {
			continue
		}
		if before == nil {
			before = make(map[types.UID]response, len(results))
		}
		before[id] = before[id].next(result, every, now)
	}
	return before
}

// holds reports whether it is too early for a request.
func (r response) holds(want Action, every time.Duration, now time.Time) bool {
	pause := backOff(every, math.MaxInt, "")
	longest := now.Add(max(pause+pause/8, longestRetryAfter)) // a later time is that of another clock
	return r.Request.strength() >= want.strength() && r.Until.After(now) && !r.Until.After(longest)
}

// repeatedBy reports whether an action repeats the request of the response.
func (r response) repeatedBy(want Action) bool {
	return want.IsRequest() && r.Request.IsRequest() && r.Request.strength() >= want.strength()
}

// next returns the response to the request that followed r.
func (r response) next(result Result, every time.Duration, now time.Time) response {
	at := pastOrNow(result.At, now)
	reason, message, after := result.Response()
	next := response{Request: result.Row.Action, Reason: reason, Message: message, Budgets: result.Row.Versions}
	if result.Err == nil {
		next.Until = at.Add(every)
		return next
	}
	next.Tries = 1
	if r.Request == next.Request {
		next.Tries += min(max(0, r.Tries), math.MaxInt16)
	}
	next.Until = at.Add(max(backOff(every, next.Tries, result.Row.id()), after))
	return next
}

// backOff returns the pause after consecutive refusals: it doubles twice. Up to a tenth more, by
// pod, spreads the requests.
func backOff(every time.Duration, tries int, pod types.UID) time.Duration {
	pause := every << min(max(0, tries-1), 2)
	if pod == "" {
		return pause
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod))
	return pause + pause/1000*time.Duration(hash.Sum32()%101)
}

// Response returns the reason and message of the response to a request, and the pause that the API
// server requests, at most a minute. It reads the types of the error, never its text. The reason of
// an accepted request is [ReasonTerminating].
func (r Result) Response() (reason machinist.Reason, message string, retryAfter time.Duration) {
	err := r.Err
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
	case apierrors.IsTooManyRequests(err), unanswered(err):
		return reasonUnavailable
	case apierrors.IsNotFound(err):
		return reasonGone
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reasonForbidden
	case apierrors.IsInvalid(err):
		return reasonInvalid
	default:
		return reasonRefused
	}
}

// aboutBudget reports whether the API server could not update a PodDisruptionBudget, for example
// because too many evictions are in progress.
func aboutBudget(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	return details.Group == policyv1.GroupName && details.Kind == "poddisruptionbudget"
}

// unanswered reports whether it is unknown if a request was carried out.
func unanswered(err error) bool {
	var network interface{ Timeout() bool } // like net.Error, without the import
	return errors.As(err, &network) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		errors.Is(err, context.Canceled) // context.DeadlineExceeded has a Timeout
}

// longestMessage is the longest stored message, in bytes.
const longestMessage = 256

// clip cuts a text between two characters.
func clip(s string, longest int) string {
	if len(s) <= longest {
		return s
	}
	return line.Beginning(s, longest-len("...")) + "..."
}
