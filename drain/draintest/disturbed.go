// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isDisturbed says whether a pod carries a DisruptionTarget condition that is taken back if the pod is not deleted
// within two minutes. That of a kubelet is not, and what has ended needs none.
func isDisturbed(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || hasEnded(pod) {
		return false
	}
	condition := podCondition(pod, corev1.DisruptionTarget)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason != corev1.PodReasonTerminationByKubelet
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// calmDown takes back what was announced to pods and has not happened, as the disruption controller does.
func (c *Cluster) calmDown(now time.Time) {
	for _, key := range ordered(c.index.disturbed) {
		pod := c.index.pods[key.namespace][key.name]
		if pod == nil || calmAt(pod).After(now) {
			continue
		}
		after := pod.DeepCopy()
		setPodCondition(&after.Status, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse, ObservedGeneration: pod.Generation,
			LastTransitionTime: metav1.NewTime(c.now()).Rfc3339Copy(),
		})
		req := request{actor: byDisruptionController, verb: "update", resource: podsResource, subresource: "status", namespace: key.namespace, name: key.name}
		_ = c.commit(c.kinds[podsResource], req, pod, after) // both come from the store
	}
}

// calmAt is when the announcement to a disturbed pod is taken back.
func calmAt(pod *corev1.Pod) time.Time {
	if condition := podCondition(pod, corev1.DisruptionTarget); condition != nil {
		return condition.LastTransitionTime.Add(confirmTime)
	}
	return time.Time{}
}
