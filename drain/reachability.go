// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NodeReachability is whether the kubelet of a Node answers. The zero value is a kubelet that
// answers.
type NodeReachability struct {
	// Unreachable means that the kubelet does not answer. Its pods may run or not.
	Unreachable bool
	// Since is when the kubelet last answered. Zero means the first step that observed it.
	Since time.Time
}

// ReachabilityOf returns the reachability of a Node: it is unreachable while its condition Ready is
// Unknown. With Ready False the kubelet answers and stops pods. A nil Node is not unreachable.
func ReachabilityOf(node *corev1.Node) NodeReachability {
	if node == nil {
		return NodeReachability{}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse {
			return NodeReachability{Unreachable: true, Since: c.LastTransitionTime.Time}
		}
	}
	return NodeReachability{}
}
