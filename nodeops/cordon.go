// SPDX-License-Identifier: Apache-2.0

package nodeops

import corev1 "k8s.io/api/core/v1"

// Cordon returns a deep copy of node that is marked unschedulable, and whether it was not so
// before. A nil node gives nil.
//
// It does not record who asked. Whoever may want to take the mark away again must know whether it
// is theirs to take: unschedulable is one flag for everybody, people included.
func Cordon(node *corev1.Node) (_ *corev1.Node, changed bool) {
	if node == nil {
		return nil, false
	}
	out := node.DeepCopy()
	return out, cordon(out)
}

// cordon marks node, which it may change.
func cordon(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	node.Spec.Unschedulable = true
	return true
}
