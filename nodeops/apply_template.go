// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// SyncTemplateOnNode makes the node carry desired, by the rules of [SyncTemplate], and of
// [UpdateNode] for conflicts and errors. It returns what was changed; nothing is written if that
// is nothing.
func SyncTemplateOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, desired Template) (TemplateChange, error) {
	var change TemplateChange
	_, _, err := UpdateNode(ctx, c, nodeName, func(node *corev1.Node) (bool, error) {
		base, err := LastAppliedTemplate(node)
		if err != nil {
			return false, err
		}
		change = PlanTemplate(node, base, desired)
		change.apply(node)
		return !change.Empty(), nil
	})
	if err != nil {
		return TemplateChange{}, err
	}
	return change, nil
}

// SyncCapacityOnNode makes the status of the node report desired, by the rules of [SyncCapacity],
// and of [UpdateNodeStatus] for conflicts and errors. It returns what was changed; nothing is written
// if that is nothing.
func SyncCapacityOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, desired corev1.ResourceList) (CapacityChange, error) {
	var change CapacityChange
	_, _, err := UpdateNodeStatus(ctx, c, nodeName, func(node *corev1.Node) (bool, error) {
		base, err := LastAppliedCapacity(node)
		if err != nil {
			return false, err
		}
		change = PlanCapacity(node, base, desired)
		change.apply(node)
		return !change.Empty(), nil
	})
	if err != nil {
		return CapacityChange{}, err
	}
	return change, nil
}
