// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// phases are all phases that a machine can have. The empty one is that of a new
// machine.
var phases = []v1alpha1.MachinePhase{
	"", v1alpha1.MachinePending, v1alpha1.MachineAvailable, v1alpha1.MachineRunning, v1alpha1.MachineTerminating,
	v1alpha1.MachineUnknown, v1alpha1.MachineFailed, v1alpha1.MachineCrashLoopBackOff,
	v1alpha1.MachineInPlaceUpdating, v1alpha1.MachineInPlaceUpdateSuccessful, v1alpha1.MachineInPlaceUpdateFailed,
}

func validPhase(p v1alpha1.MachinePhase) bool { return slices.Contains(phases, p) }

// correctPhase writes a phase in place of one that no machine can have. A machine
// whose VM is known is judged by its Node from there; of any other the VM is looked
// for, and no second one is made.
func (l *life) correctPhase() Decision {
	return l.move(TriggerPhaseInvalid, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
			fmt.Sprintf("The phase %q of machine %s does not exist and is corrected", s.CurrentStatus.Phase, l.m.Name))
	})
}

// neverUpdated writes a phase in place of that of an update in place in which the
// Node takes no part: it has neither the condition nor a label of one. It returns
// false if the machine has no such phase.
func (l *life) neverUpdated(node *corev1.Node) (Decision, bool) {
	if !l.moves(TriggerNoUpdate) || conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) != nil {
		return Decision{}, false
	}
	for _, label := range []string{
		v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult,
	} {
		if _, found := node.Labels[label]; found {
			return Decision{}, false
		}
	}
	return l.move(TriggerNoUpdate, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
			"The phase %q of machine %s is corrected: node %s has no condition %s and no label of an update in place",
			s.CurrentStatus.Phase, l.m.Name, node.Name, v1alpha1.NodeInPlaceUpdate))
	}), true
}
