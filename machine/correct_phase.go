// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// correctPhase writes a phase in place of one that no machine can have. A machine
// whose VM is known is judged by its Node from there; of any other the VM is looked
// for, and no second one is made.
func (l *logic) correctPhase() Decision {
	return l.move(ReasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("The phase %q of machine %s does not exist and is corrected", l.phase(), l.m.Name)))
}

// correctUpdatePhase writes a phase in place of that of an update in place in which the
// Node takes no part: it has neither the condition nor a label of one. It returns
// false if the machine has no such phase.
func (l *logic) correctUpdatePhase(node *corev1.Node) (Decision, bool) {
	if !leads(l.phase(), ReasonStatusInvalid) || conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) != nil {
		return Decision{}, false
	}
	for _, label := range []string{
		v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult,
	} {
		if _, found := node.Labels[label]; found {
			return Decision{}, false
		}
	}
	return l.move(ReasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
		"The phase %q of machine %s is corrected: node %s has no condition %s and no label of an update in place",
		l.phase(), l.m.Name, node.Name, v1alpha1.NodeInPlaceUpdate))), true
}
