// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// takenOver is what another controller had done of a deletion when it stopped: the
// reference system, or this one before a restart. Each field implies those before
// it, but forced.
type takenOver struct {
	// drained: the Node need not be drained any more.
	drained bool
	// detached: nor do its volumes have to be detached.
	detached bool
	// vmDeleted: the provider has confirmed that the VM is gone.
	vmDeleted bool
	// forced: it was drained by force. Only said where it was not detached yet.
	forced bool
}

// handover is one way in which a controller ends the description of its last
// operation: with the marker of its next step, after words that begin and end so.
type handover struct{ step, begins, ends string }

// handovers are all descriptions of a deletion from which something is taken over.
// The steps before and the drain itself are begun anew, which costs a round.
var handovers = []handover{
	{v1alpha1.DelVolumesAttachments, "Force Drain successful. ", ""},
	{v1alpha1.DelVolumesAttachments, "Drain failed due to - ", ". However, since it's a force deletion shall continue deletion of VM. "},

	{v1alpha1.InitiateVMDeletion, "Drain successful. ", ""},
	{v1alpha1.InitiateVMDeletion, "Skipping drain as nodeName is not a valid one for machine. ", ""},
	{v1alpha1.InitiateVMDeletion, "Running without target cluster, skipping node drain and volume attachment deletion. ", ""},
	{v1alpha1.InitiateVMDeletion, "Skipping deleteNodeVolAttachments due to - ", ". Moving to VM Deletion. "},
	{v1alpha1.InitiateVMDeletion, "Node Volumes for node: ", " are already detached. Moving to VM Deletion. "},
	{v1alpha1.InitiateVMDeletion, "No Live VolumeAttachments for node: ", ". Moving to VM Deletion. "},
	{v1alpha1.InitiateVMDeletion, "VM deletion failed due to - ", ". However, will re-try in the next resync. "},
	{v1alpha1.InitiateVMDeletion, "VM deletion failed due to - ", ". Aborting operation. "},
	{v1alpha1.InitiateVMDeletion, "Error occurred while decoding machine error: ", ". "},
	{v1alpha1.InitiateVMDeletion, "machineclass/", ": the VM cannot be deleted without it. "}, // our own
	{v1alpha1.InitiateVMDeletion, "machineclass/", " may be left. "},                          // our own

	{v1alpha1.InitiateNodeDeletion, "VM deletion was successful. ", ""},
	{v1alpha1.InitiateNodeDeletion, "VM not found. Continuing deletion flow. ", ""},
	{v1alpha1.InitiateNodeDeletion, "Retrieval of Node Object ", ", Retrying. "},
	{v1alpha1.InitiateNodeDeletion, "Removal of finalizers from Node Object ", ", Retrying. "},
	{v1alpha1.InitiateNodeDeletion, "Deletion of Node Object ", ". "},

	{v1alpha1.InitiateFinalizerRemoval, "Label \"node\" not present on machine ", ", continuing deletion flow. "},
	{v1alpha1.InitiateFinalizerRemoval, "No node object found for ", ", continuing deletion flow. "},
	{v1alpha1.InitiateFinalizerRemoval, "Deletion of Node Object ", " is successful. "},
}

// takeOver returns what need not be done again of the deletion of a machine. It is
// the only function of this module that reads the description of an operation.
//
// MCM keeps its place in a deletion there, as the marker of the
// next step at the very end. A marker anywhere else is the text of a provider, and
// words of ours may quote anything; so only a description as a whole is believed,
// and only of a machine that is Terminating. What is not recognized costs a round
// of draining, never more.
//
// That a Node was drained is believed only if the Node says so too: its condition
// Terminating is set before the drain, so a Node that got it after the description
// was written joined later, or was not known; so may one that got it within the
// same second.
//
// That the VM is gone saves the wait for a provider that may not show it yet. To
// ask for its deletion once more is cheap, and is done. The last step takes over no
// more than that: whether a Node is there shows by itself.
//
// A description from the future tells nothing of the Node.
func takeOver(m *v1alpha1.Machine, node *corev1.Node, now time.Time) takenOver {
	op := m.Status.LastOperation
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating || op.Type != v1alpha1.MachineOperationDelete {
		return takenOver{}
	}
	step := stepOf(op.Description)
	switch step {
	case v1alpha1.InitiateNodeDeletion, v1alpha1.InitiateFinalizerRemoval:
		return takenOver{drained: true, detached: true, vmDeleted: true}
	case "":
		return takenOver{}
	}
	if node == nil || op.LastUpdateTime.After(now) {
		return takenOver{}
	}
	marked := conditionOf(node.Status.Conditions, v1alpha1.NodeTerminationCondition)
	if marked == nil || !marked.LastTransitionTime.Before(&op.LastUpdateTime) {
		return takenOver{}
	}
	if step == v1alpha1.DelVolumesAttachments {
		return takenOver{drained: true, forced: true}
	}
	return takenOver{drained: true, detached: true}
}

// stepOf returns the step that a description hands over, or "".
func stepOf(description string) string {
	for _, h := range handovers {
		words, ok := strings.CutSuffix(description, h.step)
		if !ok {
			continue
		}
		if words == "" {
			return h.step
		}
		if words, ok = strings.CutPrefix(words, h.begins); ok && strings.HasSuffix(words, h.ends) && (h.ends != "" || words == "") {
			return h.step
		}
	}
	return ""
}
