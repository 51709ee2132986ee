// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

var podsResource = corev1.Resource("pods")

// caused returns an error of the API server with a cause.
func caused(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause, Message: message}}
	return err
}

func TestAnswersOfTheAPIServer(t *testing.T) {
	severalBudgets := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "This pod has more than one PodDisruptionBudget",
	}}
	full := errors.New("the pod is full")
	for _, tt := range []struct {
		name    string
		err     error
		reason  drain.Reason
		message string
		pause   time.Duration
	}{
		{"an accepted eviction is no end yet", nil, drain.ReasonTerminating, "", 5 * time.Second},
		{
			"a budget that refuses is named",
			caused(apierrors.NewTooManyRequests("Cannot evict", 0), policyv1.DisruptionBudgetCause, "The disruption budget web needs 2"),
			drain.ReasonBudget, "The disruption budget web needs 2", 5 * time.Second,
		},
		{
			"a budget that asks for time gets it",
			caused(apierrors.NewTooManyRequests("Cannot evict", 10), policyv1.DisruptionBudgetCause, ""),
			drain.ReasonBudget, "Cannot evict", 10 * time.Second,
		},
		{"a busy server is no budget", apierrors.NewTooManyRequests("busy", 7), drain.ReasonThrottled, "busy", 7 * time.Second},
		{"a server cannot ask for sooner than the policy", apierrors.NewTooManyRequests("busy", 1), drain.ReasonThrottled, "busy", 5 * time.Second},
		{"a server cannot ask for ever", apierrors.NewTooManyRequests("busy", math.MaxInt32), drain.ReasonThrottled, "busy", time.Minute},
		{"a negative pause is none", apierrors.NewTooManyRequests("busy", -7), drain.ReasonThrottled, "busy", 5 * time.Second},
		{"a pod that is gone is not asked for again at once", apierrors.NewNotFound(podsResource, "a"), drain.ReasonGone, `pods "a" not found`, 5 * time.Second},
		{
			"a pod that is another by now is not asked for again at once",
			apierrors.NewConflict(podsResource, "a", full), drain.ReasonConflict, `Operation cannot be fulfilled on pods "a": the pod is full`, 5 * time.Second,
		},
		{
			"a namespace on its way out takes the pod along",
			caused(apierrors.NewForbidden(podsResource, "a", full), corev1.NamespaceTerminatingCause, "namespace shop is being terminated"),
			drain.ReasonNamespace, `pods "a" is forbidden: the pod is full`, 5 * time.Second,
		},
		{"a missing permission says so", apierrors.NewForbidden(podsResource, "a", full), drain.ReasonForbidden, `pods "a" is forbidden: the pod is full`, 5 * time.Second},
		{"two budgets for one pod are repeated to people", severalBudgets, drain.ReasonRefused, "This pod has more than one PodDisruptionBudget", 5 * time.Second},
		{"a wrapped error counts", fmt.Errorf("evict: %w", apierrors.NewNotFound(podsResource, "a")), drain.ReasonGone, `evict: pods "a" not found`, 5 * time.Second},
		{"a text decides nothing", errors.New("TooManyRequests: DisruptionBudget not found"), drain.ReasonRefused, "TooManyRequests: DisruptionBudget not found", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a"))
			plan := drain.Decide(in, drain.Policy{}, now)
			in.Answers = in.Answers.After(plan, []drain.Result{{Row: plan.Rows[0], Err: tt.err}}, drain.Policy{}, now)
			require.Equal(t, drain.Answers{"uid-a": {
				Asked: drain.Evict, Reason: tt.reason, Message: tt.message, Until: now.Add(tt.pause),
			}}, in.Answers)

			row := drain.Decide(in, drain.Policy{}, now.Add(tt.pause-1)).Rows[0]
			require.Equal(t, []any{drain.Wait, tt.reason, tt.message}, []any{row.Verdict, row.Reason, row.Message})
			require.Equal(t, drain.Evict, drain.Decide(in, drain.Policy{}, now.Add(tt.pause)).Rows[0].Verdict)
		})
	}
}

func TestAnswersAreKeptAsLongAsTheirPods(t *testing.T) {
	kept := drain.Answer{Asked: drain.Evict, Reason: drain.ReasonBudget, Until: now.Add(time.Second)}
	before := drain.Answers{"uid-a": kept, "uid-b": kept}
	t.Run("an answer about a pod that has gone is dropped", func(t *testing.T) {
		plan := drain.Decide(observed(newPod("a")), drain.Policy{}, now)
		require.Equal(t, drain.Answers{"uid-a": kept}, before.After(plan, nil, drain.Policy{}, now))
	})
	t.Run("a round that saw nothing drops nothing", func(t *testing.T) {
		require.Equal(t, before, before.After(drain.Decide(drain.Observation{}, drain.Policy{}, now), nil, drain.Policy{}, now))
	})
	t.Run("none are as good as empty ones", func(t *testing.T) {
		require.Empty(t, drain.Answers(nil).After(drain.Plan{}, nil, drain.Policy{}, now))
	})
	require.Equal(t, drain.Answers{"uid-a": kept, "uid-b": kept}, before, "the receiver is not changed")
}
