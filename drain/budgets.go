// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
)

// mostUnconfirmed is how many evictions of a budget may wait for the disruption controller. With
// more, the API server refuses evictions.
const mostUnconfirmed = 2000

// spendBudgets holds the evictions that the API server would refuse: in the order of
// [Decision.Requests] each budget allows as many as it has left. An accepted eviction counts until
// its budget has changed.
func spendBudgets(pods []*corev1.Pod, rows []Row, x *budgetIndex, last map[types.UID]response, now time.Time) {
	if len(x.all) == 0 {
		return
	}
	order := make([]int, 0, len(rows))
	for i := range rows {
		row, pod := &rows[i], pods[i]
		if row.Action == Evict || row.Action == Wait {
			order = append(order, i)
		}
		if row.Action == Wait && row.Reason == ReasonTerminating && pod.Status.Phase != corev1.PodPending {
			countAccepted(x.of(pod), pod, last[row.id()])
		}
	}
	inOrder := func(a, b int) int { return requestOrder(rows[a], rows[b]) }
	if !slices.IsSortedFunc(order, inOrder) {
		slices.SortStableFunc(order, inOrder)
	}
	for _, i := range order {
		if !withoutBudget(pods[i]) {
			spend(&rows[i], pods[i], x.of(pods[i]), now.Add(lookAgain))
		}
	}
}

// countAccepted subtracts the eviction of a terminating pod from its budget if the budget has not
// changed since: the observed pod may be newer than the observed budget.
func countAccepted(covering *coverage, pod *corev1.Pod, last response) {
	if last.Request != Evict || last.Budgets == "" {
		return
	}
	for _, b := range covering.budgets {
		if b.version == last.Budgets && b.charges(pod) {
			b.left = max(0, b.left-1)
		}
	}
}

// spend subtracts the eviction of a pod from its budget, or holds it. It adds the budgets to the
// row of a pod whose eviction was refused.
func spend(row *Row, pod *corev1.Pod, covering *coverage, until time.Time) {
	hold := func(reason machinist.Reason, message string) {
		row.wait(reason, joinMessages(message, row.Message), until)
		row.Budgets = covering.shown()
	}
	switch many := len(covering.budgets) > 1; {
	case row.Action == Wait && row.Reason == reasonRefused && many:
		// only the text of the API server has the cause
		row.Reason, row.Message, row.Budgets = ReasonBudgets, covering.overlapping(), covering.shown()
	case row.Action == Wait:
		if row.Reason == ReasonBudget {
			row.Budgets = covering.shown()
		}
	case many:
		row.Versions = covering.versions()
		hold(ReasonBudgets, covering.overlapping())
	case len(covering.budgets) == 1:
		b := covering.budgets[0]
		row.Versions = b.version
		switch {
		case !b.charges(pod):
		case b.left > 0:
			b.left--
		default:
			hold(b.refusal(pod))
		}
	}
}

// forgetRefusals ends the back-off of evictions whose budgets have changed since the refusal.
func forgetRefusals(last map[types.UID]response, in *Observation, x *budgetIndex) {
	if !in.Budgets.Complete || len(last) == 0 {
		return
	}
	for _, pod := range in.Pods.Items {
		if pod == nil {
			continue
		}
		id := idOf(pod)
		r := last[id]
		if r.Reason == ReasonBudget && !r.Until.IsZero() && x.of(pod).versions() != r.Budgets {
			r.Until = time.Time{}
			last[id] = r
		}
	}
}

// neverAllows reports whether a budget allows no disruption although all of its pods are healthy,
// unless its spec or its number of pods changes. A budget that allows a disruption now, as in a
// rollout with a surge, is none.
func neverAllows(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Status.DisruptionsAllowed <= 0 && (requiresAll(budget) || tooFewPods(budget))
}

// requiresAll reports whether a budget requires all pods, for any number of pods.
func requiresAll(budget *policyv1.PodDisruptionBudget) bool {
	return share(budget.Spec.MaxUnavailable) <= 0 || share(budget.Spec.MinAvailable) >= 100
}

// tooFewPods reports whether a budget requires all pods that exist now.
func tooFewPods(budget *policyv1.PodDisruptionBudget) bool {
	s := budget.Status
	if s.ObservedGeneration < budget.Generation || s.ExpectedPods <= 0 || syncFailure(budget) != "" {
		return false
	}
	return s.DesiredHealthy >= s.ExpectedPods || s.CurrentHealthy >= s.ExpectedPods && len(s.DisruptedPods) == 0
}

// share returns the percentage of all pods that a value is. It returns 50 for nil, an invalid
// value and a positive number, whose percentage is unknown.
func share(value *intstr.IntOrString) int {
	const unknown = 50
	switch {
	case value == nil, value.Type == intstr.Int && value.IntVal > 0:
		return unknown
	case value.Type == intstr.Int:
		return 0
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true); err == nil {
		return percent
	}
	return unknown
}

// withoutBudget reports whether the API server evicts a pod without checking budgets.
func withoutBudget(pod *corev1.Pod) bool {
	return finished(pod) || pod.Status.Phase == corev1.PodPending || !pod.DeletionTimestamp.IsZero()
}

// charges reports whether the eviction of a pod counts. The eviction of an unready pod does not if
// the budget always allows it, or has enough healthy pods.
func (b *budget) charges(pod *corev1.Pod) bool {
	if ready(pod) {
		return true
	}
	if how := b.Spec.UnhealthyPodEvictionPolicy; how != nil && *how == policyv1.AlwaysAllow {
		return false
	}
	return b.Status.DesiredHealthy <= 0 || b.Status.CurrentHealthy < b.Status.DesiredHealthy
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// allowed returns how many evictions a budget allows. While its status is outdated it allows none.
func allowed(budget *policyv1.PodDisruptionBudget) int32 {
	if budget.Status.ObservedGeneration < budget.Generation || len(budget.Status.DisruptedPods) > mostUnconfirmed {
		return 0
	}
	return max(0, budget.Status.DisruptionsAllowed)
}

// refusal returns why a budget refuses a pod.
func (b *budget) refusal(pod *corev1.Pod) (machinist.Reason, string) {
	if b.reason == "" {
		b.reason, b.message = b.explain()
	}
	if !ready(pod) {
		return b.reason, b.message + "; the pod is not ready, and the unhealthyPodEvictionPolicy is not AlwaysAllow"
	}
	return b.reason, b.message
}

func (b *budget) explain() (machinist.Reason, string) {
	shown := b.shown()
	name := func() string { return "budget " + b.Namespace + "/" + b.Name + " " }
	failed := syncFailure(b.PodDisruptionBudget)
	switch {
	case neverAllows(b.PodDisruptionBudget):
		return ReasonBudgetNever, name() + "never allows a disruption" + b.demand() + ": " + string(shown.appendPods(nil))
	case b.Status.ObservedGeneration < b.Generation:
		return ReasonBudget, name() + "was changed, and its status is older"
	case failed != "":
		return ReasonBudget, name() + "has no status: " + clip(failed, longestMessage)
	case len(b.Status.DisruptedPods) > mostUnconfirmed:
		return ReasonBudget, fmt.Sprintf("%shas %d evictions in progress", name(), len(b.Status.DisruptedPods))
	}
	text := shown.appendTo(make([]byte, 0, 128))
	if shown.Allowed > 0 {
		text = append(text, "; already used for other pods"...)
	}
	return ReasonBudget, string(text)
}

// demand returns the field of the spec that allows no disruption.
func (b *budget) demand() string {
	of := ""
	if !requiresAll(b.PodDisruptionBudget) {
		of = " of so few pods"
	}
	switch {
	case b.Spec.MaxUnavailable != nil:
		return of + ", maxUnavailable is " + b.Spec.MaxUnavailable.String()
	case b.Spec.MinAvailable != nil:
		return of + ", minAvailable is " + b.Spec.MinAvailable.String()
	default:
		return of
	}
}

// syncFailure returns why the status of a budget could not be computed, or "".
func syncFailure(budget *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(budget.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return oneLine(c.Message)
}

// shown returns the budget for a row.
func (b *budget) shown() Budget {
	return Budget{
		Namespace: b.Namespace, Name: b.Name, Allowed: allowed(b.PodDisruptionBudget),
		Healthy: b.Status.CurrentHealthy, Desired: b.Status.DesiredHealthy, Expected: b.Status.ExpectedPods,
	}
}
