// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/nodeops"
)

// Backoff is [nodeops.Backoff]. The functions of this package do not read it.
var Backoff = nodeops.Backoff()

// AddOrUpdateCondition returns a copy of a Node with a condition: see [nodeops.CloneAndAddCondition].
func AddOrUpdateCondition(node *corev1.Node, condition corev1.NodeCondition) *corev1.Node {
	node = node.DeepCopy()
	node.Status.Conditions = nodeops.CloneAndAddCondition(node.Status.Conditions, condition)
	return node
}

// UpdateNodeConditions stores the conditions of newNode in the status of the Node. It is a conflict
// if the Node is not oldNode any more.
func UpdateNodeConditions(ctx context.Context, c kubernetes.Interface, _ string, oldNode, newNode *corev1.Node) error {
	node := oldNode.DeepCopy()
	node.Status.Conditions = newNode.Status.Conditions
	return onlyError(c.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}))
}

// UpdateNodeTaints stores the taints of newNode in the Node. It is a conflict if the Node is not
// oldNode any more.
func UpdateNodeTaints(ctx context.Context, c kubernetes.Interface, _ string, oldNode, newNode *corev1.Node) error {
	node := oldNode.DeepCopy()
	node.Spec.Taints = newNode.Spec.Taints
	return onlyError(c.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}))
}

func onlyError(_ *corev1.Node, err error) error { return err }
