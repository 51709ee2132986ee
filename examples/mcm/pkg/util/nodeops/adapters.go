// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener/machine-controller-manager/internal/nodes"
	"github.com/machinist-dev/machinist/nodeops"
)

// Backoff is [nodes.Backoff]. The functions of this package do not read it.
var Backoff = nodes.Backoff

// AddOrUpdateConditionsOnNode is [nodes.AddOrUpdateConditionsOnNode].
func AddOrUpdateConditionsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, condition corev1.NodeCondition) (*corev1.Node, error) {
	return nodes.AddOrUpdateConditionsOnNode(ctx, c, nodeName, condition)
}

// GetNodeCondition is [nodes.GetNodeCondition].
func GetNodeCondition(ctx context.Context, c kubernetes.Interface, nodeName string, conditionType corev1.NodeConditionType) (*corev1.NodeCondition, error) {
	return nodes.GetNodeCondition(ctx, c, nodeName, conditionType)
}

// AddOrUpdateTaintOnNode is [nodes.AddOrUpdateTaintOnNode].
func AddOrUpdateTaintOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, taints ...*corev1.Taint) error {
	return nodes.AddOrUpdateTaintOnNode(ctx, c, nodeName, taints...)
}

// RemoveTaintOffNode is [nodes.RemoveTaintOffNode].
func RemoveTaintOffNode(ctx context.Context, c kubernetes.Interface, nodeName string, node *corev1.Node, taints ...*corev1.Taint) error {
	return nodes.RemoveTaintOffNode(ctx, c, nodeName, node, taints...)
}

// AddOrUpdateCondition returns a copy of a Node with a condition: see [nodeops.CloneAndAddCondition].
func AddOrUpdateCondition(node *corev1.Node, condition corev1.NodeCondition) *corev1.Node {
	node = node.DeepCopy()
	node.Status.Conditions = nodeops.CloneAndAddCondition(node.Status.Conditions, condition)
	return node
}

// UpdateNodeConditions stores the conditions of newNode in the status of the Node. It is a conflict
// if the Node is not oldNode any more.
func UpdateNodeConditions(ctx context.Context, c kubernetes.Interface, _ string, oldNode, newNode *corev1.Node) (*corev1.Node, error) {
	node := oldNode.DeepCopy()
	node.Status.Conditions = newNode.Status.Conditions
	return c.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
}

// UpdateNodeTaints stores the taints of newNode in the Node. It is a conflict if the Node is not
// oldNode any more.
func UpdateNodeTaints(ctx context.Context, c kubernetes.Interface, _ string, oldNode, newNode *corev1.Node) error {
	node := oldNode.DeepCopy()
	node.Spec.Taints = newNode.Spec.Taints
	return onlyError(c.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}))
}

func onlyError(_ *corev1.Node, err error) error { return err }
