// SPDX-License-Identifier: Apache-2.0

// Package nodeops_test holds the names of package nodeops that controllers use.
package nodeops_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/nodeops"
)

var (
	_ func(context.Context, kubernetes.Interface, string, corev1.NodeConditionType) (*corev1.NodeCondition, error) = nodeops.GetNodeCondition
	_ func([]corev1.NodeCondition, corev1.NodeCondition) []corev1.NodeCondition                                    = nodeops.CloneAndAddCondition
	_ func(context.Context, kubernetes.Interface, string, corev1.NodeCondition) error                              = nodeops.AddOrUpdateConditionsOnNode
)
