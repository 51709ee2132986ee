// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition returns a condition with the time now.
func Condition(t corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) corev1.NodeCondition {
	at := metav1.NewTime(now)
	return corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
}

// ConditionOf returns the first condition of a type, or nil.
func ConditionOf(conditions []corev1.NodeCondition, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}
