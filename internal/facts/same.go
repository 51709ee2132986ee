// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// SameObject reports whether two MachineClasses or Secrets are equal in all that decisions read.
var SameObject = conversion.EqualitiesOrDie(
	func(a, b metav1.ObjectMeta) bool { return sameMeta(&a, &b) },
	func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 },
).DeepEqual

// SameMachine reports whether two machines are equal in all that decisions read.
func SameMachine(a, b *v1alpha1.Machine) bool {
	return sameMeta(&a.ObjectMeta, &b.ObjectMeta) && sameSpec(&a.Spec, &b.Spec) && sameStatus(&a.Status, &b.Status)
}

func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Namespace == b.Namespace &&
		a.CreationTimestamp.Equal(&b.CreationTimestamp) && a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) && slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, SameOwner)
}

// SameOwner reports whether two references are equal.
func SameOwner(a, b metav1.OwnerReference) bool {
	pointers := same(a.Controller, b.Controller) && same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
	a.Controller, b.Controller, a.BlockOwnerDeletion, b.BlockOwnerDeletion = nil, nil, nil, nil
	return pointers && a == b
}

// same reports whether two pointers are both nil or point to the same value.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameSpec(a, b *v1alpha1.MachineSpec) bool {
	x, y := &a.NodeTemplateSpec, &b.NodeTemplateSpec
	return a.Class == b.Class && a.ProviderID == b.ProviderID &&
		maps.Equal(x.Labels, y.Labels) && maps.Equal(x.Annotations, y.Annotations) && slices.EqualFunc(x.Spec.Taints, y.Spec.Taints, SameTaint) &&
		(a.MachineConfiguration == b.MachineConfiguration || reflect.DeepEqual(a.MachineConfiguration, b.MachineConfiguration))
}

func sameStatus(a, b *v1alpha1.MachineStatus) bool {
	x, y := a.CurrentStatus, b.CurrentStatus
	x.PreserveExpiryTime, y.PreserveExpiryTime = nil, nil
	return x == y && a.CurrentStatus.PreserveExpiryTime.Equal(b.CurrentStatus.PreserveExpiryTime) &&
		a.LastOperation == b.LastOperation && a.LastKnownState == b.LastKnownState &&
		slices.Equal(a.Addresses, b.Addresses) && slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

// SameNode reports whether two Nodes are equal in all that decisions read.
func SameNode(a, b *corev1.Node) bool {
	return sameMeta(&a.ObjectMeta, &b.ObjectMeta) && a.Spec.ProviderID == b.Spec.ProviderID && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, SameTaint) &&
		maps.EqualFunc(a.Status.Capacity, b.Status.Capacity, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }) &&
		slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, sameCondition)
}

// SameTaint reports whether two taints are equal, with their times.
func SameTaint(a, b corev1.Taint) bool {
	added := a.TimeAdded.Equal(b.TimeAdded)
	a.TimeAdded, b.TimeAdded = nil, nil
	return added && a == b
}

func sameCondition(a, b corev1.NodeCondition) bool {
	a.LastHeartbeatTime, b.LastHeartbeatTime = metav1.Time{}, metav1.Time{}
	switch a.Type {
	case v1alpha1.NodeInPlaceUpdate, v1alpha1.NodePreserved, v1alpha1.NodeTerminationCondition, v1alpha1.MachineValid:
	default:
		a.Message, b.Message = "", ""
	}
	return a == b
}
