// SPDX-License-Identifier: Apache-2.0

package facts

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	scaleDownOff      = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	scaleDownOffByMCM = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
	scaleDownOffValue = "true"
)

// JoinHeldAnnotation on a set means that a rollout to it goes on. The machines that the set creates
// meanwhile have it, too, and the write for a Node that joins also disables its scale-down by the
// autoscaler. Otherwise the deployment would write each new Node once more.
const JoinHeldAnnotation = "machinist.dev/scale-down-disabled-on-join"

// JoinHeld reports whether a set or a machine has the annotation [JoinHeldAnnotation].
func JoinHeld(o metav1.Object) bool { return o.GetAnnotations()[JoinHeldAnnotation] != "" }

// Holdable reports whether a Node has no annotation about its scale-down. One of a user stays.
func Holdable(n *corev1.Node) bool {
	_, disabled := n.Annotations[scaleDownOff]
	return !disabled && !HeldByMCM(n)
}

// HoldJoining disables the scale-down of a Node that joins, if its machine has the annotation
// [JoinHeldAnnotation] and the Node has none about its scale-down. It reports whether it did.
func HoldJoining(m *v1alpha1.Machine, n *corev1.Node) bool {
	hold := JoinHeld(m) && Holdable(n)
	if hold {
		Hold(n)
	}
	return hold
}

// HeldByMCM reports whether a controller of this group has disabled the scale-down of a Node.
func HeldByMCM(n *corev1.Node) bool {
	_, ours := n.Annotations[scaleDownOffByMCM]
	return ours
}

// Hold disables the scale-down of a Node by the autoscaler.
func Hold(n *corev1.Node) {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, scaleDownOff, scaleDownOffValue)
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, scaleDownOffByMCM, scaleDownOffValue)
}

// Unhold enables the scale-down of a Node again.
func Unhold(n *corev1.Node) {
	delete(n.Annotations, scaleDownOffByMCM)
	if n.Annotations[scaleDownOff] == scaleDownOffValue {
		delete(n.Annotations, scaleDownOff)
	}
}
