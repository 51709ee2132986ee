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

// confirmTime is how long a budget waits for an evicted pod to be deleted before it gives the disruption back.
const confirmTime = 2 * time.Minute

// budgetsAfter brings the budgets up to date that a change concerns: it stands in for the disruption controller, which
// does the same a moment later. Like that one it looks at pods and budgets only: when an owner asks for another number
// of pods, it notices with the next change of a pod.
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

// budgetsAfterPod looks at the budgets of a pod only if something changed that they depend on. A budget which a change
// of labels leaves behind is not told, as on a real cluster: it learns of it when something else happens.
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

// confirmDisruptions recomputes the budgets which wait for an evicted pod to be deleted.
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
	var pods []*corev1.Pod // in any order: they are only counted
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

// budgetStatus is the arithmetic of the disruption controller.
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

// stillDisrupted keeps the evictions that are neither confirmed by the deletion of the pod nor too old.
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

// expected returns how many pods there should be and how many of them must be healthy. As in the real controller, a
// maximum or a percentage counts what the owners of the pods ask for, a pod without owner counts for nothing there, and
// an owner which does not say how many it wants is an error; unlike it, an owner that this cluster does not have is
// taken to ask for the pods that it has.
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

// syncFailed is the status of a budget that could not be worked out: it allows nothing, and the rest stays as it was.
func syncFailed(status policyv1.PodDisruptionBudgetStatus, err error, now time.Time) policyv1.PodDisruptionBudgetStatus {
	status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: err.Error(),
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	})
	return status
}

// scaled resolves a number or percentage, rounding up; what cannot be read is zero.
func scaled(value *intstr.IntOrString, total int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(total), true)
	if err != nil {
		return 0
	}
	return int32(n) //nolint:gosec // a cluster in memory
}

// scaleOf sums what the controllers of the pods ask for.
func (c *Cluster) scaleOf(pods []*corev1.Pod) (int32, error) {
	asked := map[types.UID]int32{}
	own := map[types.UID]int32{}
	for _, pod := range pods {
		ref := metav1.GetControllerOf(pod)
		if ref == nil {
			continue
		}
		uid, want, err := c.askedBy(ref.UID)
		if err != nil {
			return 0, err
		}
		if want < 0 {
			own[uid]++
			want = own[uid]
		}
		asked[uid] = want
	}
	var sum int32
	for _, n := range asked {
		sum += n
	}
	return sum, nil
}

// askedBy returns how many pods an owner asks for, negative if this cluster does not have the owner. For a replica set
// that belongs to a deployment, the deployment answers.
func (c *Cluster) askedBy(uid types.UID) (types.UID, int32, error) {
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
	key, there := c.index.keys[uid]
	if !there {
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

// setAllowedCondition keeps the DisruptionAllowed condition in step with the number.
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
