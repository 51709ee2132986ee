// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

var (
	_ func([]corev1.NodeCondition, corev1.NodeCondition) []corev1.NodeCondition = nodeops.CloneAndAddCondition
)
