// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	corev1 "k8s.io/api/core/v1"
)

// Fence is what keeps pods, and perhaps traffic, off a Node. The zero Fence cordons
// the Node for nobody in particular.
type Fence struct {
	// Owner names who fences, as the name part of an annotation: letters, digits and
	// dashes, dots or underscores in between. The Node then carries a claim of the owner, so that it can
	// be opened again when its last owner leaves. Without an owner nobody is recorded,
	// and nothing is ever taken back.
	Owner string
	// Reason is kept with the claim, for people.
	Reason string
	// Taint is the key of a taint of the owner's, with effect NoSchedule, that is set
	// instead of the mark unschedulable, which people use as well. Empty means that
	// the Node is marked.
	Taint string
	// ExcludeFromLoadBalancers sets the label that takes the Node out of load
	// balancers.
	ExcludeFromLoadBalancers bool
	// OutOfService sets the taint that tells Kubernetes to detach the volumes of
	// the Node and to remove its pods. It may be set only once the instance is off.
	OutOfService bool
}

// Stands says whether the Node is fenced so: all marks are there, and the claim if
// the fence has an owner. A nil Node is not.
func (f Fence) Stands(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	return node.Spec.Unschedulable
}
