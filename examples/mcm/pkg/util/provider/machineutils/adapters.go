// SPDX-License-Identifier: Apache-2.0

package machineutils

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var (
	// EssentialTaints are the keys of the taints of a Node that keep its Machine in phase Pending.
	EssentialTaints = []string{v1alpha1.TaintNodeCriticalComponentsNotReady}
	// AllowedPreserveAnnotationValues are the values of [PreserveMachineAnnotationKey].
	AllowedPreserveAnnotationValues = sets.New(
		v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse,
	)
)

// IsMachinePreservationExpired is [v1alpha1.IsMachinePreservationExpired] at the present time.
//
//go:fix inline
func IsMachinePreservationExpired(m *v1alpha1.Machine) bool {
	return v1alpha1.IsMachinePreservationExpired(m, time.Now())
}

// GetMachineDeploymentName returns the name of the MachineDeployment of a Machine: the value of
// [v1alpha1.LabelKeyMachineDeploymentName].
//
//go:fix inline
func GetMachineDeploymentName(m *v1alpha1.Machine) string {
	return m.Labels[v1alpha1.LabelKeyMachineDeploymentName]
}
