// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
)

// mostUnconfirmed is how many evictions a budget may have under way that nobody has
// confirmed; with more of them the API server refuses.
const mostUnconfirmed = 2000

// NeverAllows says whether a budget refuses every eviction of a healthy pod as it is
// written and as long as there are no more pods than now: it allows none to be
// unavailable, asks for all of them, or allows nothing though all are healthy and none
// is being disrupted. A budget that allows something now is none of these, whatever it
// says, as in a rollout with a surge of pods. Nil is none.
func NeverAllows(budget *policyv1.PodDisruptionBudget) bool {
	if budget == nil || budget.Status.DisruptionsAllowed > 0 {
		return false
	}
	return asksForAll(budget) || tooFewPods(budget)
}

// asksForAll says whether a budget asks for all pods, however many there are.
func asksForAll(budget *policyv1.PodDisruptionBudget) bool {
	return share(budget.Spec.MaxUnavailable) <= 0 || share(budget.Spec.MinAvailable) >= 100
}

// tooFewPods says whether a budget asks for as many pods as there are now.
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
	if value == nil {
		return someOfThem
	}
	if value.Type == intstr.Int {
		if value.IntVal <= 0 {
			return 0
		}
		return someOfThem
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
	if err != nil {
		return someOfThem
	}
	return percent
}

// budget is a budget in a round.
type budget struct {
	*policyv1.PodDisruptionBudget
	// pairs are labels that all pods have that it covers. They are the whole selector if
	// selector is nil.
	pairs    []labelPair
	selector labels.Selector
	// version identifies it, and how it is now.
	version string
	// left is how many pods may still be asked to go.
	left int32
	// reason and message say why it refuses; filled when needed.
	reason  machinist.Reason
	message string
}

// withoutBudget says whether the API server evicts a pod without a look at budgets.
func withoutBudget(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	default:
		return !pod.DeletionTimestamp.IsZero()
	}
}

// charges says whether the eviction of a pod counts. That of a pod which is not ready
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
// budget is not worked out. A pod that was evicted and still runs is not among the healthy
// ones for two minutes; to ask for it again costs as much as for another.
func allowed(budget *policyv1.PodDisruptionBudget) int32 {
	if budget.Status.ObservedGeneration < budget.Generation || len(budget.Status.DisruptedPods) > mostUnconfirmed {
		return 0
	}
	return max(0, budget.Status.DisruptionsAllowed)
}

// refusal says why a budget refuses a pod.
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
	failed := syncFailure(b.PodDisruptionBudget)
	switch {
	case NeverAllows(b.PodDisruptionBudget):
		of := ""
		if !asksForAll(b.PodDisruptionBudget) {
			of = " of so few pods"
		}
		return ReasonBudgetNever, fmt.Sprintf("budget %s/%s never allows a disruption%s%s: %s", b.Namespace, b.Name, of, b.demand(), seen.pods())
	case b.Status.ObservedGeneration < b.Generation:
		return ReasonBudget, fmt.Sprintf("budget %s/%s was changed and not yet worked out again", b.Namespace, b.Name)
	case failed != "":
		return ReasonBudget, fmt.Sprintf("budget %s/%s could not be worked out: %s", b.Namespace, b.Name, clip(failed, longestMessage))
	case len(b.Status.DisruptedPods) > mostUnconfirmed:
		return ReasonBudget, fmt.Sprintf("budget %s/%s has %d evictions under way", b.Namespace, b.Name, len(b.Status.DisruptedPods))
	}
	var room [256]byte
	text := seen.appendTo(room[:0])
	if seen.Allowed > 0 {
		text = append(text, "; other pods take that"...)
	}
	return ReasonBudget, string(text)
}

// demand repeats what the budget says that no number of pods fulfils.
func (b *budget) demand() string {
	switch {
	case b.Spec.MaxUnavailable != nil:
		return ", maxUnavailable is " + b.Spec.MaxUnavailable.String()
	case b.Spec.MinAvailable != nil:
		return ", minAvailable is " + b.Spec.MinAvailable.String()
	default:
		return ""
	}
}

// syncFailure returns why the status of a budget could not be worked out, or nothing.
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
