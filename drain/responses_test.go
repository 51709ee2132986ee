// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
)

var podsResource = corev1.Resource("pods")

// caused returns an error of the API server with a cause.
func caused(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause, Message: message}}
	return err
}

// budgetRefusal returns the error of the API server about a budget that refuses an eviction.
func budgetRefusal(message string, retryAfter int) error {
	return caused(apierrors.NewTooManyRequests("Cannot evict", retryAfter), policyv1.DisruptionBudgetCause, message)
}

func TestStep_ErrorsOfTheAPIServer_HaveReasons(t *testing.T) {
	full := errors.New("the pod is full")
	dying := caused(apierrors.NewForbidden(podsResource, "a", full), corev1.NamespaceTerminatingCause, "shop is being terminated")
	budgets := policyv1.Resource("poddisruptionbudget")
	unknown := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}
	const every = 5 * time.Second
	for _, tt := range []struct {
		name  string
		err   error
		want  string // a beginning of reason and message
		pause time.Duration
	}{
		{"a budget with a pause", budgetRefusal("", 10), "DisruptionBudget: Cannot evict", 10 * time.Second},
		{"a busy API server", apierrors.NewTooManyRequests("busy", 7), "Unavailable: busy", 7 * time.Second},
		{"a busy API server without a pause", apierrors.NewTooManyRequestsError("busy"), "Unavailable: Too many requests: busy", every},
		{"a pause shorter than the back-off", apierrors.NewTooManyRequests("busy", 1), "Unavailable: busy", every},
		{"a pause longer than the limit", apierrors.NewTooManyRequests("busy", math.MaxInt32), "Unavailable: busy", time.Minute},
		{"a negative pause", apierrors.NewTooManyRequests("busy", -7), "Unavailable: busy", every},
		{"a pod that is gone", fmt.Errorf("evict: %w", apierrors.NewNotFound(podsResource, "a")), `Gone: evict: pods "a" not found`, every},
		{"a terminating namespace", dying, `Refused: pods "a" is forbidden: the pod is full`, every},
		{"a budget with too many evictions", apierrors.NewForbidden(budgets, "web", full), "DisruptionBudget: poddisruptionbudget.policy", every},
		{"another resource of the group policy", apierrors.NewForbidden(policyv1.Resource("evictions"), "web", full), "Forbidden: evictions.policy", every},
		{"a conflict over a budget", apierrors.NewConflict(budgets, "web", full), "Refused: Operation cannot be fulfilled", every},
		{"a timeout of a budget update", apierrors.NewTimeoutError("late", 10), "Unavailable: Timeout: late", 10 * time.Second},
		{"a server timeout", apierrors.NewServerTimeout(podsResource, "create", 0), "Unavailable: The create operation", every},
		{"an unavailable API server", apierrors.NewServiceUnavailable("starting"), "Unavailable: starting", every},
		{"a deadline exceeded", fmt.Errorf("evict: %w", context.DeadlineExceeded), "Unavailable: evict: context deadline exceeded", every},
		{"a canceled context", context.Canceled, "Unavailable: context canceled", every},
		{"a long message is cut between two characters", errors.New(strings.Repeat("ü", 1000)), "Refused: " + strings.Repeat("ü", 126) + "...", every},
		{"the text of an error is not parsed", errors.New("TooManyRequests: no\n\tbudget  found\r\n "), "Refused: TooManyRequests: no budget found", every},
		{"a status without details", unknown, "Forbidden: no", every},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a"))
			s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
			in.Results = []drain.Result{{Row: plan.Rows[0], Err: tt.err}}
			s, plan = drain.Step(s, in, drain.Policy{}, now)
			in.Results = nil

			response, row := s.Responses["uid-a"], plan.Rows[0]
			pause := response.Until.Sub(now)
			require.GreaterOrEqual(t, pause, tt.pause)
			require.LessOrEqual(t, pause, tt.pause+tt.pause/10)
			require.Regexp(t, "^"+regexp.QuoteMeta(tt.want), string(response.Reason)+": "+response.Message)
			require.Equal(t, []any{drain.Evict, tt.err != nil}, []any{response.Request, response.Tries == 1})
			require.Equal(t, []any{drain.Wait, response.Reason, response.Message}, []any{row.Action, row.Reason, row.Message})

			s, plan = drain.Step(s, in, drain.Policy{}, now.Add(pause-1))
			require.Equal(t, drain.Wait, plan.Rows[0].Action)
			_, plan = drain.Step(s, in, drain.Policy{}, now.Add(pause))
			require.Equal(t, drain.Evict, plan.Rows[0].Action)
		})
	}
}

func TestStep_PodIsGone_ResponseIsDropped(t *testing.T) {
	responded := func(pods ...string) drain.State {
		s := drain.State{Started: now, Responses: map[types.UID]drain.Response{}}
		for _, uid := range pods {
			s.Responses[types.UID(uid)] = drain.Response{Request: drain.Evict, Reason: drain.ReasonBudget, Until: now.Add(time.Second)}
		}
		return s
	}
	t.Run("the response for a pod that is gone is dropped", func(t *testing.T) {
		after, _ := drain.Step(responded("uid-a", "uid-b"), observed(newPod("a")), drain.Policy{}, now)
		require.Equal(t, responded("uid-a").Responses, after.Responses)
	})
	t.Run("a successor of the same name has no response", func(t *testing.T) {
		successor := newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })
		_, plan := drain.Step(responded("uid-a"), observed(successor), drain.Policy{}, now)
		require.Equal(t, drain.Evict, plan.Rows[0].Action)
	})
}

// TestStep_RefusedAgain_WaitsLonger asserts that there is at most one refused eviction per pod and
// back-off step.
func TestStep_RefusedAgain_WaitsLonger(t *testing.T) {
	const every = 5 * time.Second
	in := observed(newPod("a"), newPod("b"))
	random := rand.New(rand.NewPCG(1, 2))
	var s drain.State
	requested := map[types.UID][]time.Time{}
	for at := now; at.Before(now.Add(10 * time.Minute)); at = at.Add(time.Duration(random.Int64N(int64(time.Second)))) {
		var plan drain.Decision
		s, plan = drain.Step(s, in, drain.Policy{}, at)
		in.Results = nil
		for _, row := range plan.Rows {
			if row.Action == drain.Evict {
				requested[row.UID] = append(requested[row.UID], at)
				in.Results = append(in.Results, drain.Result{Row: row, Err: budgetRefusal("no", 0), At: at})
			}
		}
	}
	require.NotEqual(t, requested["uid-a"][1:], requested["uid-b"][1:], "pods are not retried at the same times")
	for _, times := range requested {
		for i := 1; i < len(times); i++ {
			pause := every << min(i-1, 2)
			gap := times[i].Sub(times[i-1])
			require.GreaterOrEqual(t, gap, pause)
			require.Less(t, gap, pause+pause/10+time.Second, "the next request is not late")
		}
		require.LessOrEqual(t, len(times), int(10*time.Minute/(4*every))+3)
	}
}

func TestStep_OtherRequest_RestartsTheBackOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before drain.Response
		tries  int
	}{
		{"another request", drain.Response{Request: drain.Delete, Tries: 7}, 1},
		{"the same request continues it", drain.Response{Request: drain.Evict, Tries: 7}, 8},
		{"with a negative number of tries", drain.Response{Request: drain.Evict, Tries: -7}, 1},
	} {
		in := observed(newPod("a"))
		evict := drain.Row{UID: "uid-a", Action: drain.Evict}
		in.Results = []drain.Result{{Row: evict, Err: errors.New("no"), At: now.Add(30 * time.Second)}}
		s, _ := drain.Step(drain.State{Responses: map[types.UID]drain.Response{"uid-a": tt.before}}, in, drain.Policy{}, now)
		require.Equal(t, tt.tries, s.Responses["uid-a"].Tries, tt.name)
		require.WithinDuration(t, now, s.Responses["uid-a"].Until, 25*time.Second, "a result in the future counts from now")
	}
}
