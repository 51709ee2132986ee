// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// GetCondition returns the condition of the given type, nil if there is none.
// It points into a copy.
func GetCondition(status v1alpha1.MachineDeploymentStatus, kind v1alpha1.MachineDeploymentConditionType) *v1alpha1.MachineDeploymentCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
}

func newCondition(kind v1alpha1.MachineDeploymentConditionType, status v1alpha1.ConditionStatus, reason, message string, now time.Time) v1alpha1.MachineDeploymentCondition {
	return v1alpha1.MachineDeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}

// withCondition returns the conditions with c put last, in place of the one of
// its type. One of the same status and reason stays as it is; one of the same
// status gives its transition time to c.
func withCondition(conditions []v1alpha1.MachineDeploymentCondition, c v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	for _, present := range conditions {
		if present.Type != c.Type || present.Status != c.Status {
			continue
		}
		if present.Reason == c.Reason {
			return conditions
		}
		c.LastTransitionTime = present.LastTransitionTime
		break
	}
	return append(withoutCondition(conditions, c.Type), c)
}

// withoutFuture returns the conditions with the present time in place of a later one in
// the Progressing condition: it was recorded by a clock that is ahead of this one. The
// progress deadline begins anew, rather than late by the difference of the clocks.
func withoutFuture(conditions []v1alpha1.MachineDeploymentCondition, now time.Time) []v1alpha1.MachineDeploymentCondition {
	i := slices.IndexFunc(conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentProgressing && c.LastUpdateTime.After(now)
	})
	if i < 0 {
		return conditions
	}
	conditions = slices.Clone(conditions)
	conditions[i].LastUpdateTime = metav1.NewTime(now)
	return conditions
}

func withoutCondition(conditions []v1alpha1.MachineDeploymentCondition, kind v1alpha1.MachineDeploymentConditionType) []v1alpha1.MachineDeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c v1alpha1.MachineDeploymentCondition) bool { return c.Type == kind })
}
