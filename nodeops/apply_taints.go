// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// SetTaintsOnNode makes sure that the node has the taints, by the rules of [SetTaints], and of
// [UpdateNode] for conflicts and errors. It reports whether a write was necessary.
func SetTaintsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, taints ...corev1.Taint) (changed bool, err error) {
	_, changed, err = UpdateNode(ctx, c, nodeName, func(node *corev1.Node) (changed bool, _ error) {
		node.Spec.Taints, changed = SetTaints(node.Spec.Taints, taints)
		return changed, nil
	})
	return changed, err
}

// RemoveTaintsFromNode makes sure that the node has no taint with the key and effect of one of
// those given, by the rules of [UpdateNode] for conflicts and errors. It reports whether a write
// was necessary.
func RemoveTaintsFromNode(ctx context.Context, c kubernetes.Interface, nodeName string, taints ...corev1.Taint) (changed bool, err error) {
	_, changed, err = UpdateNode(ctx, c, nodeName, func(node *corev1.Node) (changed bool, _ error) {
		node.Spec.Taints, changed = RemoveTaints(node.Spec.Taints, taints)
		return changed, nil
	})
	return changed, err
}
