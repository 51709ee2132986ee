// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxDisruptedPods is how many evicted pods that are not deleted a budget may have.
const maxDisruptedPods = 2000

// evict carries out an eviction in the order of the API server. It charges the budget of a pod that runs, checks the
// preconditions, sets the condition DisruptionTarget, and deletes the pod. An eviction whose preconditions fail has
// charged the budget, as on a real API server. The charge ends after two minutes.
func (c *Cluster) evict(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	eviction, ok := in.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an Eviction object: %T", in))
	}
	var opts metav1.DeleteOptions
	if eviction.DeleteOptions != nil {
		opts = *eviction.DeleteOptions
	}
	if eviction.Namespace != "" && eviction.Namespace != req.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	req.name = eviction.Name
	req.dryRun = req.dryRun || len(opts.DryRun) > 0
	obj, err := c.get(k, req.namespace, req.name)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("not a pod: %T", obj))
	}
	if !needsNoBudget(pod) {
		if err := c.charge(pod, req); err != nil {
			return nil, err
		}
	}
	if err := checkPreconditions(k, pod, opts.Preconditions); err != nil {
		return nil, err
	}
	success := &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}
	if req.dryRun {
		return success, nil
	}
	if err := c.announce(k, req, pod); err != nil {
		return nil, err
	}
	opts.Preconditions = nil
	return success, c.delete(k, req, opts)
}

// needsNoBudget reports whether a pod is evicted without checking budgets.
func needsNoBudget(pod *corev1.Pod) bool {
	return hasEnded(pod) || pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil
}

// charge subtracts one disruption from the budget of a pod, or returns the error of the API server.
func (c *Cluster) charge(pod *corev1.Pod, req request) error {
	budgets := c.budgetsOf(pod)
	switch len(budgets) {
	case 0:
		return nil
	case 1:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	budget := budgets[0]
	if !isReady(pod) {
		policy := budget.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow {
			return nil
		}
		if budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0 {
			return nil // the pod does not count as healthy
		}
	}
	if err := allows(budget); err != nil || req.dryRun {
		return err
	}
	after := budget.DeepCopy()
	after.Status.DisruptionsAllowed--
	if after.Status.DisruptedPods == nil {
		after.Status.DisruptedPods = map[string]metav1.Time{}
	}
	after.Status.DisruptedPods[pod.Name] = metav1.NewTime(c.now()).Rfc3339Copy()
	setAllowedCondition(&after.Status, after.Generation, c.now())
	charged := request{actor: req.actor, verb: "update", resource: budgetsResource, subresource: "status", namespace: budget.Namespace, name: budget.Name}
	return c.commit(c.kinds[budgetsResource], charged, budget, after)
}

// allows returns the error of the API server if the budget allows no disruption.
func allows(budget *policyv1.PodDisruptionBudget) error {
	resource := policyv1.Resource("poddisruptionbudget")
	switch {
	case budget.Status.ObservedGeneration < budget.Generation:
		return refusal(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name))
	case budget.Status.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(resource, budget.Name, fmt.Errorf("pdb disruptions allowed is negative"))
	case len(budget.Status.DisruptedPods) > maxDisruptedPods:
		return apierrors.NewForbidden(resource, budget.Name,
			fmt.Errorf("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case budget.Status.DisruptionsAllowed == 0:
		return refusal(0, exhausted(budget))
	default:
		return nil
	}
}

// exhausted returns the message of the API server about a budget that allows no disruption.
func exhausted(budget *policyv1.PodDisruptionBudget) string {
	status := budget.Status
	condition := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	explained := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	switch {
	case explained && condition.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", budget.Name, condition.Message)
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy)
	case explained:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", budget.Name, condition.Reason, condition.Message)
	default:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
	}
}

// refusal returns the 429 of a budget.
func refusal(retryAfter int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

// announce sets the condition DisruptionTarget of the pod.
func (c *Cluster) announce(k *kind, req request, pod *corev1.Pod) error {
	after := pod.DeepCopy()
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: metav1.NewTime(c.now()).Rfc3339Copy(),
	}
	setPodCondition(&after.Status, condition)
	if k.same(pod, after) {
		return nil
	}
	return c.commit(k, req, pod, after)
}

// budgetsOf returns the budgets that cover the pod, by name. An empty selector also covers a pod without labels.
func (c *Cluster) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var found []*policyv1.PodDisruptionBudget
	for _, budget := range inOrder(c.index.budgets[pod.Namespace]) {
		if selectorOf(budget).Matches(labels.Set(pod.Labels)) {
			found = append(found, budget)
		}
	}
	return found
}

// selectorOf returns the selector of a budget. A nil or malformed one selects no pod, an empty one all.
func selectorOf(budget *policyv1.PodDisruptionBudget) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return sel
}

func isReady(pod *corev1.Pod) bool {
	condition := podCondition(pod, corev1.PodReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
