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

// mostUnconfirmed is how many evictions a budget may have under way that the disruption
// controller has not confirmed; with more of them the API server refuses.
const mostUnconfirmed = 2000

// spendBudgets lets as many pods of each budget be asked to go as the budget allows, in
// the order of [Decision.Requests], and holds the requests that the API server would refuse.
// A pod that has been asked, and whose budget has not changed since, has been paid for
// out of what is seen to be allowed.
func spendBudgets(pods []*corev1.Pod, rows []Row, x *budgetIndex, answers map[types.UID]response, now time.Time) {
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
			countAccepted(x.of(pod), pod, answers[row.UID])
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

// countAccepted takes from a budget what a pod has cost it that is terminating, if the
// budget has not been seen to change since: a pod may be seen earlier than its budget.
func countAccepted(covering *coverage, pod *corev1.Pod, answer response) {
	if answer.Asked != Evict || answer.Budgets == "" {
		return
	}
	for _, b := range covering.budgets {
		if b.version == answer.Budgets && b.charges(pod) {
			b.left = max(0, b.left-1)
		}
	}
}

// spend takes the eviction of a pod from its budget, or holds it. To an eviction that the API
// server refused it adds which budgets are behind that.
func spend(row *Row, pod *corev1.Pod, covering *coverage, until time.Time) {
	hold := func(reason machinist.Reason, message string) {
		row.wait(reason, joinMessages(message, row.Message), until)
		row.Budgets = covering.shown()
	}
	switch many := len(covering.budgets) > 1; {
	case row.Action == Wait && row.Reason == reasonRefused && many:
		// the API server says so in words alone
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

// forgetRefusals lets the requests be repeated at once that budgets refused which have
// changed since.
func forgetRefusals(answers map[types.UID]response, in *Observation, x *budgetIndex) {
	if !in.Budgets.Complete || len(answers) == 0 {
		return
	}
	for _, pod := range in.Pods.Items {
		if pod == nil {
			continue
		}
		answer := answers[pod.UID]
		if answer.Reason == ReasonBudget && !answer.Until.IsZero() && x.of(pod).versions() != answer.Budgets {
			answer.Until = time.Time{}
			answers[pod.UID] = answer
		}
	}
}

// neverAllows reports whether a budget refuses every eviction of a healthy pod as it is
// written and as long as there are no more pods than now: it allows none to be
// unavailable, asks for all of them, or allows nothing though all are healthy and none
// is being disrupted. A budget that allows something now is none of these, such as in a
// rollout with a surge of pods.
func neverAllows(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Status.DisruptionsAllowed <= 0 && (asksForAll(budget) || tooFewPods(budget))
}

// asksForAll reports whether a budget asks for all pods, however many there are.
func asksForAll(budget *policyv1.PodDisruptionBudget) bool {
	return share(budget.Spec.MaxUnavailable) <= 0 || share(budget.Spec.MinAvailable) >= 100
}

// tooFewPods reports whether a budget asks for as many pods as there are now.
func tooFewPods(budget *policyv1.PodDisruptionBudget) bool {
	s := budget.Status
	if s.ObservedGeneration < budget.Generation || s.ExpectedPods <= 0 || syncFailure(budget) != "" {
		return false
	}
	return s.DesiredHealthy >= s.ExpectedPods || s.CurrentHealthy >= s.ExpectedPods && len(s.DisruptedPods) == 0
}

// share returns what part of all pods a value is, in percent, as far as it can be
// told without their number: of numbers it knows only that none is none. What cannot
// be told is 50.
func share(value *intstr.IntOrString) int {
	const someOfThem = 50
	switch {
	case value == nil, value.Type == intstr.Int && value.IntVal > 0:
		return someOfThem
	case value.Type == intstr.Int:
		return 0
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true); err == nil {
		return percent
	}
	return someOfThem
}

// withoutBudget reports whether the API server evicts a pod without a look at budgets.
func withoutBudget(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	default:
		return !pod.DeletionTimestamp.IsZero()
	}
}

// charges reports whether the eviction of a pod counts. That of a pod which is not ready
// does not if the budget always allows it, or has enough others that are healthy.
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

// allowed returns how many pods may be asked to go that count: none as long as the
// status of the budget is not up to date. A pod that was evicted and still runs is not among
// the healthy ones for two minutes; to ask for it again costs as much as for another.
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
		return b.reason, b.message + "; the pod is not ready, which the budget does not excuse"
	}
	return b.reason, b.message
}

func (b *budget) explain() (machinist.Reason, string) {
	seen := b.seen()
	name := func() string { return "budget " + b.Namespace + "/" + b.Name + " " }
	failed := syncFailure(b.PodDisruptionBudget)
	switch {
	case neverAllows(b.PodDisruptionBudget):
		return ReasonBudgetNever, name() + "never allows a disruption" + b.demand() + ": " + string(seen.appendPods(nil))
	case b.Status.ObservedGeneration < b.Generation:
		return ReasonBudget, name() + "was changed, and its status is older"
	case failed != "":
		return ReasonBudget, name() + "has no status: " + clip(failed, longestMessage)
	case len(b.Status.DisruptedPods) > mostUnconfirmed:
		return ReasonBudget, fmt.Sprintf("%shas %d evictions under way", name(), len(b.Status.DisruptedPods))
	}
	text := seen.appendTo(make([]byte, 0, 128))
	if seen.Allowed > 0 {
		text = append(text, "; other pods take that"...)
	}
	return ReasonBudget, string(text)
}

// demand repeats what the budget says that no number of pods fulfils.
func (b *budget) demand() string {
	of := ""
	if !asksForAll(b.PodDisruptionBudget) {
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

// syncFailure returns why the status of a budget could not be computed, or nothing.
func syncFailure(budget *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(budget.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return oneLine(c.Message)
}

// seen returns the budget as it is shown to people.
func (b *budget) seen() Budget {
	return Budget{
		Namespace: b.Namespace, Name: b.Name, Allowed: allowed(b.PodDisruptionBudget),
		Healthy: b.Status.CurrentHealthy, Desired: b.Status.DesiredHealthy, Expected: b.Status.ExpectedPods,
	}
}
