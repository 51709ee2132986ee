// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// impossible reports whether no machine without a deletion timestamp has the recorded phase: the phase
// does not exist, or it is Terminating. A restored backup has such a phase, or a status that was
// written by hand.
func (l *logic) impossible() bool {
	return !facts.Exists(l.phase()) || l.phase() == v1alpha1.MachineTerminating
}

// correctPhase replaces a phase that contradicts what is observed. A machine with a Node is then judged
// by its Node, and one that joins no cluster is Available. For other machines the creation is
// resumed: the VM is looked up, and no second VM is created.
func (l *logic) correctPhase() Decision {
	why := "does not match its VM and"
	switch {
	case !l.in.Node.NoTarget && l.nodeName() != "" && !l.nodeLooked():
		return l.notObserved(l.nodeSubject(), "")
	case l.phase() == v1alpha1.MachineTerminating:
		why = "without a deletion timestamp"
	case l.impossible():
		why = "does not exist and"
	}
	return l.move(reasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing,
		fmt.Sprintf("The phase %q of machine %s %s is corrected", l.phase(), l.m.Name, why)))
}

// untargeted returns the decision for a machine with a VM that joins no cluster. Its phase is
// Available while it has a VM, whatever phase it had in a cluster.
func (l *logic) untargeted() Decision {
	identified := l.m.Spec.ProviderID != ""
	switch {
	case l.phase() == v1alpha1.MachineFailed:
		return l.waitForReplacement()
	case identified && l.phase() != v1alpha1.MachineAvailable, !identified && l.in.VM.notFound():
		return l.correctPhase()
	default:
		return settled(reasonAvailable)
	}
}

// notFound reports whether the provider did not find the VM at the last look.
func (v VMView) notFound() bool { return v.Presence == absent && !v.Blind }

// correctUpdatePhase replaces the phase InPlaceUpdating or InPlaceUpdateFailed of a machine whose
// Node takes part in no in-place update: the Node has no label of one, and its condition is not
// that of an update under way or failed. It returns false for other machines.
func (l *logic) correctUpdatePhase(node *corev1.Node) (Decision, bool) {
	if !leads(l.phase(), reasonStatusInvalid) {
		return Decision{}, false
	}
	switch facts.UpdateStep(node) {
	case v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate, v1alpha1.UpdateFailed:
		return Decision{}, false
	}
	for _, label := range []string{
		v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate, v1alpha1.LabelKeyNodeUpdateResult,
	} {
		if _, found := node.Labels[label]; found {
			return Decision{}, false
		}
	}
	return l.move(reasonStatusInvalid, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
		"The phase %q of machine %s is corrected: node %s takes part in no in-place update", l.phase(), l.m.Name, node.Name))), true
}
