// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updateInPlace lets the agent of the Node report the success of a requested update in place after
// UpdateTime.
func updateInPlace(v view, p pace, now time.Time, out *plan) {
	i := slices.IndexFunc(v.node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeInPlaceUpdate })
	if p.update <= 0 || i < 0 {
		return
	}
	asked := v.node.Status.Conditions[i]
	if asked.Reason != v1alpha1.ReadyForUpdate || v.node.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful {
		return
	}
	if due := asked.LastTransitionTime.Add(p.update); due.After(now) {
		out.until(due)
		return
	}
	after := v.node.DeepCopy()
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelKeyNodeUpdateResult, v1alpha1.LabelValueNodeUpdateSuccessful)
	out.do(labelNode{v.node, after})
}
