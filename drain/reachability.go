// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
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
	c := nodeops.GetCondition(node, corev1.NodeReady)
	if c == nil || c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse {
		return NodeReachability{}
	}
	return NodeReachability{Unreachable: true, Since: c.LastTransitionTime.Time}
}
