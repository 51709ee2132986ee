// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updateInPlace lets the agent of the Node report the result of a requested update in place after
// UpdateTime. It repeats a failed update if the update may succeed now.
func updateInPlace(v view, p pace, now time.Time, out *plan) {
	i := slices.IndexFunc(v.node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeInPlaceUpdate })
	if p.update <= 0 || i < 0 {
		return
	}
	asked := v.node.Status.Conditions[i]
	again := asked.Reason == v1alpha1.UpdateFailed && v.told.updateFails == ""
	if asked.Reason != v1alpha1.ReadyForUpdate && !again {
		return
	}
	after := v.node.DeepCopy()
	result := v1alpha1.LabelValueNodeUpdateSuccessful
	if delete(after.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason); v.told.updateFails != "" {
		result = v1alpha1.LabelValueNodeUpdateFailed
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationKeyMachineUpdateFailedReason, v.told.updateFails)
	}
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelKeyNodeUpdateResult, result)
	if maps.Equal(v.node.Labels, after.Labels) && maps.Equal(v.node.Annotations, after.Annotations) {
		return // already reported
	}
	if due := asked.LastTransitionTime.Add(p.update); due.After(now) {
		out.until(due)
		return
	}
	out.do(labelNode{v.node, after})
}
