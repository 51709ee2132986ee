// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TerminatingStatus returns the status that a set gives to a machine which it
// has just deleted: the phase Terminating, with the preservation ended, and a
// deletion as the last operation. Everything else stays. It returns false, and
// the status unchanged, if the machine says already that it is being deleted:
// the machine controller is at work then, and what it wrote is not overwritten.
//
// The write is a courtesy to whoever watches phases; nothing is lost without it.
func TerminatingStatus(s v1alpha1.MachineStatus, now time.Time) (v1alpha1.MachineStatus, bool) {
	next := *s.DeepCopy()
	if s.CurrentStatus.Phase == v1alpha1.MachineTerminating && s.LastOperation.Type == v1alpha1.MachineOperationDelete {
		return next, false
	}
	next.CurrentStatus = v1alpha1.CurrentStatus{
		Phase: v1alpha1.MachineTerminating, LastUpdateTime: metav1.NewTime(now),
	}
	next.LastOperation = v1alpha1.LastOperation{
		Description: v1alpha1.DeletingMachine, LastUpdateTime: metav1.NewTime(now),
		State: v1alpha1.MachineStateProcessing, Type: v1alpha1.MachineOperationDelete,
	}
	return next, true
}
