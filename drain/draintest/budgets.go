// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// confirmTime is how long an eviction counts for a budget until the pod is deleted.
const confirmTime = 2 * time.Minute

// budgetsAfter updates the status of the budgets that depend on a change, like the disruption controller. A change of the
// replicas of an owner counts with the next change of a pod or budget.
func (c *Cluster) budgetsAfter(k *kind, key objectKey, before, after runtime.Object) {
	if c.options.ManualBudgets || len(c.index.budgets[key.namespace]) == 0 {
		return
	}
	switch {
	case k.isBudget():
		if after != nil {
			c.refresh(key.namespace, key.name)
		}
	case k.isPod():
		c.budgetsAfterPod(orNil[corev1.Pod](before), orNil[corev1.Pod](after))
	}
}

// budgetsAfterPod updates the budgets of a pod if they depend on the change. A budget that no longer covers the pod after
// a change of labels is not updated, as on a real cluster.
func (c *Cluster) budgetsAfterPod(before, after *corev1.Pod) {
	if before != nil && after != nil && isReady(before) == isReady(after) &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		return
	}
	pod := after
	if pod == nil {
		pod = before
	}
	for _, budget := range c.budgetsOf(pod) {
		c.refresh(budget.Namespace, budget.Name)
	}
}

// confirmDisruptions recomputes the budgets with evicted pods that are not deleted.
func (c *Cluster) confirmDisruptions() {
	for _, ns := range slices.Sorted(maps.Keys(c.index.budgets)) {
		for _, budget := range inOrder(c.index.budgets[ns]) {
			if len(budget.Status.DisruptedPods) > 0 {
				c.refresh(ns, budget.Name)
			}
		}
	}
}

// refresh recomputes the status of one budget and writes it if it differs.
func (c *Cluster) refresh(namespace, name string) {
	budget := c.index.budgets[namespace][name]
	if budget == nil {
		return
	}
	var pods []*corev1.Pod // in any order
	sel := selectorOf(budget)
	for _, pod := range c.index.pods[namespace] {
		if sel.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	after := budget.DeepCopy()
	after.Status = c.budgetStatus(budget, pods)
	if equality.Semantic.DeepEqual(budget.Status, after.Status) {
		return
	}
	req := request{actor: byDisruptionController, verb: "update", resource: budgetsResource, subresource: "status", namespace: namespace, name: name}
	_ = c.commit(c.kinds[budgetsResource], req, budget, after) // both come from the store
}

// budgetStatus returns the status that the disruption controller computes.
func (c *Cluster) budgetStatus(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) policyv1.PodDisruptionBudgetStatus {
	now := c.now()
	status := *budget.Status.DeepCopy()
	expected, desired, err := c.expected(budget, pods)
	if err != nil {
		return syncFailed(status, err, now)
	}
	status.ExpectedPods, status.DesiredHealthy = expected, desired
	status.ObservedGeneration = budget.Generation
	status.DisruptedPods = stillDisrupted(budget.Status.DisruptedPods, pods, now)
	status.CurrentHealthy = countHealthy(pods, status.DisruptedPods)
	status.DisruptionsAllowed = 0
	if status.ExpectedPods > 0 {
		status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	}
	setAllowedCondition(&status, budget.Generation, now)
	return status
}

// stillDisrupted returns the evictions whose pods are not deleted, and that are not older than confirmTime.
func stillDisrupted(disrupted map[string]metav1.Time, pods []*corev1.Pod, now time.Time) map[string]metav1.Time {
	kept := map[string]metav1.Time{}
	for _, pod := range pods {
		at, evicted := disrupted[pod.Name]
		if evicted && pod.DeletionTimestamp == nil && at.Add(confirmTime).After(now) {
			kept[pod.Name] = at
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func countHealthy(pods []*corev1.Pod, disrupted map[string]metav1.Time) int32 {
	var healthy int32
	for _, pod := range pods {
		if _, evicted := disrupted[pod.Name]; evicted || pod.DeletionTimestamp != nil || !isReady(pod) {
			continue
		}
		healthy++
	}
	return healthy
}

// expected returns how many pods a budget expects and how many of them must be healthy. As in the real controller,
// maxUnavailable and percentages count the replicas of owners. A pod without owner does not count, and an owner without
// replicas is an error. An owner that this cluster does not have counts with its pods.
func (c *Cluster) expected(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, desired int32, err error) {
	switch {
	case budget.Spec.MaxUnavailable != nil:
		if expected, err = c.scaleOf(pods); err != nil {
			return 0, 0, err
		}
		return expected, max(0, expected-scaled(budget.Spec.MaxUnavailable, expected)), nil
	case budget.Spec.MinAvailable != nil && budget.Spec.MinAvailable.Type == intstr.Int:
		return int32(len(pods)), budget.Spec.MinAvailable.IntVal, nil //nolint:gosec // a cluster in memory
	case budget.Spec.MinAvailable != nil:
		if expected, err = c.scaleOf(pods); err != nil {
			return 0, 0, err
		}
		return expected, scaled(budget.Spec.MinAvailable, expected), nil
	default:
		return 0, 0, nil
	}
}

// syncFailed returns the status of a budget whose status could not be computed. It allows no disruption.
func syncFailed(status policyv1.PodDisruptionBudgetStatus, err error, now time.Time) policyv1.PodDisruptionBudgetStatus {
	status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: err.Error(),
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
	return status
}

// scaled resolves a number or percentage, rounded up. An invalid value is zero.
func scaled(value *intstr.IntOrString, total int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(total), true)
	if err != nil {
		return 0
	}
	return int32(n) //nolint:gosec // a cluster in memory
}

// scaleOf returns the sum of the replicas of the controllers of the pods.
func (c *Cluster) scaleOf(pods []*corev1.Pod) (int32, error) {
	scales := map[types.UID]int32{}
	for _, pod := range pods {
		ref := metav1.GetControllerOf(pod)
		if ref == nil {
			continue
		}
		uid, want, err := c.desiredBy(ref.UID)
		if err != nil {
			return 0, err
		}
		if want < 0 {
			want = scales[uid] + 1
		}
		scales[uid] = want
	}
	var sum int32
	for _, n := range scales {
		sum += n
	}
	return sum, nil
}

// desiredBy returns the replicas of an owner, negative if this cluster does not have the owner. A replica set of a
// deployment counts as the deployment.
func (c *Cluster) desiredBy(uid types.UID) (types.UID, int32, error) {
	key, owner := c.owner(uid)
	if owner == nil {
		return uid, -1, nil
	}
	if set, ok := owner.(*appsv1.ReplicaSet); ok {
		if ref := metav1.GetControllerOf(set); ref != nil && ref.Kind == "Deployment" {
			if _, deployment := c.owner(ref.UID); deployment != nil {
				return ref.UID, replicas(deployment), nil
			}
		}
	}
	want := replicas(owner)
	if want < 0 {
		return uid, 0, fmt.Errorf("%s does not implement the scale subresource", key.resource.GroupResource())
	}
	return uid, want, nil
}

// owner returns the object with a uid, or nil.
func (c *Cluster) owner(uid types.UID) (objectKey, runtime.Object) {
	key, exists := c.index.keys[uid]
	if !exists {
		return objectKey{}, nil
	}
	obj, err := c.tracker.Get(key.resource, key.namespace, key.name)
	if err != nil {
		return objectKey{}, nil
	}
	return key, obj
}

// replicas returns .spec.replicas, 1 if it is not set, and -1 for a kind without it and for nil.
func replicas(obj runtime.Object) int32 {
	switch typed := obj.(type) {
	case *appsv1.ReplicaSet:
		return orOne(typed.Spec.Replicas)
	case *appsv1.StatefulSet:
		return orOne(typed.Spec.Replicas)
	case *appsv1.Deployment:
		return orOne(typed.Spec.Replicas)
	case *corev1.ReplicationController:
		return orOne(typed.Spec.Replicas)
	default:
		return -1
	}
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// orNil returns obj as a *T, or nil for anything else.
func orNil[T any](obj runtime.Object) *T {
	typed, _ := any(obj).(*T)
	return typed
}

// setAllowedCondition sets the condition DisruptionAllowed according to status.disruptionsAllowed.
func setAllowedCondition(status *policyv1.PodDisruptionBudgetStatus, generation int64, now time.Time) {
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, Reason: policyv1.SufficientPodsReason,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if status.DisruptionsAllowed <= 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, policyv1.InsufficientPodsReason
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
