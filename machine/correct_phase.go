// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// correctPhase replaces a phase that does not exist. A machine with a provider ID is then judged by
// its Node. For other machines the VM is looked up, and no second VM is created.
func (l *logic) correctPhase() Decision {
	return l.move(ReasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("The phase %q of machine %s does not exist and is corrected", l.phase(), l.m.Name)))
}

// correctUpdatePhase replaces the phase InPlaceUpdating of a machine whose Node takes part in no
// in-place update: the Node has neither the condition nor a label of one. It returns false for
// other machines.
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
		"The phase %q of machine %s is corrected: node %s has no condition %s and no label of an in-place update",
		l.phase(), l.m.Name, node.Name, v1alpha1.NodeInPlaceUpdate))), true
}
