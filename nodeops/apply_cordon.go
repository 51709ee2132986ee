// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// CordonNode marks the node unschedulable, by the rules of [UpdateNode] for conflicts and errors,
// and reports whether a write was necessary. A node that does not exist is an error, which
// is NotFound; whether that is good news is for the caller to say.
func CordonNode(ctx context.Context, c kubernetes.Interface, nodeName string) (changed bool, err error) {
	_, changed, err = UpdateNode(ctx, c, nodeName, func(node *corev1.Node) (bool, error) {
		return cordon(node), nil
	})
	return changed, err
}
