// SPDX-License-Identifier: Apache-2.0

package taints

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/machine-controller-manager/internal/nodes"
	"github.com/machinist-dev/machinist/nodeops"
)

// TaintExists is [nodeops.HasTaint].
//
//go:fix inline
func TaintExists(taints []corev1.Taint, taintToFind *corev1.Taint) bool {
	return nodeops.HasTaint(taints, *taintToFind)
}

// DeleteTaint is [nodeops.RemoveTaint].
//
//go:fix inline
func DeleteTaint(taints []corev1.Taint, taintToDelete *corev1.Taint) ([]corev1.Taint, bool) {
	return nodeops.RemoveTaint(taints, *taintToDelete)
}

// ParseTaints is [nodes.ParseTaints].
func ParseTaints(spec []string) (add, remove []corev1.Taint, err error) {
	return nodes.ParseTaints(spec)
}
