// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// GetNodeCondition reads the node and returns its condition of the given type, or nil if it has
// none. Errors of the API server are wrapped, and recognised by their kind.
func GetNodeCondition(
	ctx context.Context, c kubernetes.Interface, nodeName string, conditionType corev1.NodeConditionType,
) (*corev1.NodeCondition, error) {
	nodes, err := nodesOf(c, nodeName)
	if err != nil {
		return nil, err
	}
	node, err := nodes.Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return GetCondition(node, conditionType), nil
}

// AddOrUpdateConditionsOnNode stores condition in the status of the node, by the rules of
// [SetCondition] with [OnStatusOrReason] and the present time, and of [UpdateNodeStatus] for conflicts
// and errors. Nothing is written if the node has the condition already; mind that a new
// LastHeartbeatTime is a change, and a zero one is not.
func AddOrUpdateConditionsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, condition corev1.NodeCondition) error {
	_, _, err := UpdateNodeStatus(ctx, c, nodeName, func(node *corev1.Node) (changed bool, _ error) {
		node.Status.Conditions, changed = SetCondition(node.Status.Conditions, condition, OnStatusOrReason, time.Now())
		return changed, nil
	})
	return err
}
