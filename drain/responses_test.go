// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
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
	severalBudgets := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "This pod has more than one PodDisruptionBudget",
	}}
	full := errors.New("the pod is full")
	lost := &url.Error{Op: "Post", URL: "https://api", Err: io.ErrUnexpectedEOF}
	for _, tt := range []struct {
		name    string
		err     error
		reason  machinist.Reason
		message string
		pause   time.Duration
	}{
		{"an accepted eviction", nil, drain.ReasonTerminating, "", 5 * time.Second},
		{"a budget that refuses", budgetRefusal("The disruption budget web needs 2", 0), drain.ReasonBudget, "The disruption budget web needs 2", 5 * time.Second},
		{"a budget with a pause", budgetRefusal("", 10), drain.ReasonBudget, "Cannot evict", 10 * time.Second},
		{"a busy API server", apierrors.NewTooManyRequests("busy", 7), "Unavailable", "busy", 7 * time.Second},
		{"a busy API server without a pause", apierrors.NewTooManyRequestsError("busy"), "Unavailable", "Too many requests: busy", 5 * time.Second},
		{"a pause shorter than the back-off", apierrors.NewTooManyRequests("busy", 1), "Unavailable", "busy", 5 * time.Second},
		{"a pause longer than the limit", apierrors.NewTooManyRequests("busy", math.MaxInt32), "Unavailable", "busy", time.Minute},
		{"a negative pause", apierrors.NewTooManyRequests("busy", -7), "Unavailable", "busy", 5 * time.Second},
		{"a pod that is gone is not evicted again at once", apierrors.NewNotFound(podsResource, "a"), "Gone", `pods "a" not found`, 5 * time.Second},
		{
			"a pod with another UID is not evicted again at once",
			apierrors.NewConflict(podsResource, "a", full), "Refused", `Operation cannot be fulfilled on pods "a": the pod is full`, 5 * time.Second,
		},
		{
			"a terminating namespace",
			caused(apierrors.NewForbidden(podsResource, "a", full), corev1.NamespaceTerminatingCause, "namespace shop is being terminated"),
			"Refused", `pods "a" is forbidden: the pod is full`, 5 * time.Second,
		},
		{"a missing permission", apierrors.NewForbidden(podsResource, "a", full), "Forbidden", `pods "a" is forbidden: the pod is full`, 5 * time.Second},
		{
			"a budget with too many evictions in progress",
			apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), "web", errors.New("DisruptedPods map too big")),
			drain.ReasonBudget, `poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big`, 5 * time.Second,
		},
		{"two budgets of one pod", severalBudgets, "Refused", "This pod has more than one PodDisruptionBudget", 5 * time.Second},
		{"a timeout of a budget update", apierrors.NewTimeoutError("couldn't update PodDisruptionBudget", 10), "Unavailable", "Timeout: couldn't update PodDisruptionBudget", 10 * time.Second},
		{"a server timeout", apierrors.NewServerTimeout(podsResource, "create", 0), "Unavailable", "The create operation against pods could not be completed at this time, please try again.", 5 * time.Second},
		{"an unavailable API server", apierrors.NewServiceUnavailable("starting"), "Unavailable", "starting", 5 * time.Second},
		{"a deadline exceeded", fmt.Errorf("evict: %w", context.DeadlineExceeded), "Unavailable", "evict: context deadline exceeded", 5 * time.Second},
		{"a canceled context", context.Canceled, "Unavailable", "context canceled", 5 * time.Second},
		{"a lost connection", lost, "Unavailable", `Post "https://api": unexpected EOF`, 5 * time.Second},
		{"a wrapped error", fmt.Errorf("evict: %w", apierrors.NewNotFound(podsResource, "a")), "Gone", `evict: pods "a" not found`, 5 * time.Second},
		{
			"another resource of the group policy", apierrors.NewForbidden(policyv1.Resource("evictions"), "web", full),
			"Forbidden", `evictions.policy "web" is forbidden: the pod is full`, 5 * time.Second,
		},
		{
			"a conflict over a budget", apierrors.NewConflict(policyv1.Resource("poddisruptionbudget"), "web", full),
			"Refused", `Operation cannot be fulfilled on poddisruptionbudget.policy "web": the pod is full`, 5 * time.Second,
		},
		{"a long message is cut between two characters", errors.New(strings.Repeat("ü", 1000)), "Refused", strings.Repeat("ü", 126) + "...", 5 * time.Second},
		{"the text of an error is not parsed", errors.New("TooManyRequests: DisruptionBudget not found"), "Refused", "TooManyRequests: DisruptionBudget not found", 5 * time.Second},
		{"a message of several lines", errors.New("admission\n\twebhook  denied\r\n "), "Refused", "admission webhook denied", 5 * time.Second},
		{"a status without details", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}, "Forbidden", "no", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a"))
			s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
			in.Results = []drain.Result{{Row: plan.Rows[0], Err: tt.err}}
			s, plan = drain.Step(s, in, drain.Policy{}, now)
			in.Results = nil

			response := s.Responses["uid-a"]
			pause := response.Until.Sub(now)
			require.GreaterOrEqual(t, pause, tt.pause)
			require.LessOrEqual(t, pause, tt.pause+tt.pause/10)
			require.Equal(t, []any{drain.Evict, tt.reason, tt.message}, []any{response.Request, response.Reason, response.Message})
			require.Equal(t, tt.err != nil, response.Tries == 1)
			require.Equal(t, []any{drain.Wait, tt.reason, tt.message}, []any{plan.Rows[0].Action, plan.Rows[0].Reason, plan.Rows[0].Message})

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
		before := responded("uid-a", "uid-b")
		after, _ := drain.Step(before, observed(newPod("a")), drain.Policy{}, now)
		require.Equal(t, map[types.UID]drain.Response{"uid-a": before.Responses["uid-a"]}, after.Responses)
		require.Equal(t, responded("uid-a", "uid-b"), before, "the argument is not changed")
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
	refused := func(tries int, request drain.Action) drain.State {
		return drain.State{Started: now, Responses: map[types.UID]drain.Response{"uid-a": {Request: request, Reason: "Refused", Tries: tries}}}
	}
	in := observed(newPod("a"))
	in.Results = []drain.Result{{Row: drain.Row{UID: "uid-a", Action: drain.Evict}, At: now.Add(30 * time.Second)}}
	s, _ := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, now.Add(5*time.Second), s.Responses["uid-a"].Until, "a result in the future counts from now")
	for _, tt := range []struct {
		name  string
		state drain.State
		err   error
		tries int
	}{
		{"an accepted request", refused(7, drain.Evict), nil, 0},
		{"another request", refused(7, drain.Delete), errors.New("no"), 1},
		{"the same request continues it", refused(7, drain.Evict), errors.New("no"), 8},
		{"with a negative number of tries", refused(-7, drain.Evict), errors.New("no"), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in.Results = []drain.Result{{Row: drain.Row{UID: "uid-a", Action: drain.Evict}, Err: tt.err}}
			s, _ := drain.Step(tt.state, in, drain.Policy{}, now)
			require.Equal(t, tt.tries, s.Responses["uid-a"].Tries)
		})
	}
}
