// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The functions of this file compare what decisions read of two versions of an
// object. They allocate nothing: they are asked for every event of a cluster.

func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.CreationTimestamp.Equal(&b.CreationTimestamp) && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && same(a.Controller, b.Controller)
}

// same says whether two pointers are both nil or point to the same value.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameSpec(a, b *v1alpha1.MachineSpec) bool {
	return a.Class == b.Class && a.ProviderID == b.ProviderID &&
		maps.Equal(a.NodeTemplateSpec.Labels, b.NodeTemplateSpec.Labels) &&
		maps.Equal(a.NodeTemplateSpec.Annotations, b.NodeTemplateSpec.Annotations) &&
		slices.EqualFunc(a.NodeTemplateSpec.Spec.Taints, b.NodeTemplateSpec.Spec.Taints, sameTaint) &&
		sameConfiguration(a.MachineConfiguration, b.MachineConfiguration)
}

func sameConfiguration(a, b *v1alpha1.MachineConfiguration) bool {
	if a == nil || b == nil {
		return a == b
	}
	return same(a.MachineDrainTimeout, b.MachineDrainTimeout) &&
		same(a.MachineHealthTimeout, b.MachineHealthTimeout) &&
		same(a.MachineCreationTimeout, b.MachineCreationTimeout) &&
		same(a.MachineInPlaceUpdateTimeout, b.MachineInPlaceUpdateTimeout) &&
		same(a.MachinePreserveTimeout, b.MachinePreserveTimeout) &&
		same(a.DisableHealthTimeout, b.DisableHealthTimeout) &&
		same(a.MaxEvictRetries, b.MaxEvictRetries) &&
		same(a.NodeConditions, b.NodeConditions)
}

func sameStatus(a, b *v1alpha1.MachineStatus) bool {
	x, y := &a.CurrentStatus, &b.CurrentStatus
	return x.Phase == y.Phase && x.TimeoutActive == y.TimeoutActive && x.LastUpdateTime.Equal(&y.LastUpdateTime) &&
		x.PreserveExpiryTime.Equal(y.PreserveExpiryTime) &&
		sameOperation(a.LastOperation, b.LastOperation) &&
		a.LastOperation.LastUpdateTime.Equal(&b.LastOperation.LastUpdateTime) &&
		a.LastKnownState == b.LastKnownState &&
		slices.Equal(a.Addresses, b.Addresses) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
}

// sameCondition passes over heartbeats, and over the messages of conditions that
// others write.
func sameCondition(a, b corev1.NodeCondition) bool {
	if a.Type != b.Type || a.Status != b.Status || a.Reason != b.Reason || !a.LastTransitionTime.Equal(&b.LastTransitionTime) {
		return false
	}
	switch a.Type {
	case v1alpha1.NodeInPlaceUpdate, v1alpha1.NodePreserved, v1alpha1.NodeTerminationCondition:
		return a.Message == b.Message
	default:
		return true
	}
}

func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func sameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

func sameClassContent(a, b *v1alpha1.MachineClass) bool {
	return a.Provider == b.Provider && bytes.Equal(a.ProviderSpec.Raw, b.ProviderSpec.Raw) &&
		sameNodeTemplate(a.NodeTemplate, b.NodeTemplate)
}

func sameNodeTemplate(a, b *v1alpha1.NodeTemplate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.InstanceType == b.InstanceType && a.Region == b.Region && a.Zone == b.Zone &&
		sameResources(a.Capacity, b.Capacity) && sameResources(a.VirtualCapacity, b.VirtualCapacity)
}
