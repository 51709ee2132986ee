// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TakenOver is how far another controller came with a deletion: MCM, or this controller
// before a restart. Each field but Forced implies the fields before it.
type TakenOver struct {
	// Drained means that the Node is drained.
	Drained bool
	// Detached means that its volumes are detached.
	Detached bool
	// VMDeleted means that the provider has confirmed the deletion of the VM.
	VMDeleted bool
	// Forced means that the drain was forced. It is set only before Detached.
	Forced bool
}

// handover is one form of the description of a last operation: a text with this begin and
// end, and then the marker of the next step.
type handover struct{ step, begins, ends string }

// handovers are all forms from which a deletion is continued. The steps until the drain are
// repeated, which costs a pass.
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
	{v1alpha1.InitiateVMDeletion, "machineclass/", ": the VM cannot be deleted without it. "}, // of package machine
	{v1alpha1.InitiateVMDeletion, "machineclass/", " may be left. "},                          // of package machine

	{v1alpha1.InitiateNodeDeletion, "VM deletion was successful. ", ""},
	{v1alpha1.InitiateNodeDeletion, "VM not found. Continuing deletion flow. ", ""},
	{v1alpha1.InitiateNodeDeletion, "Retrieval of Node Object ", ", Retrying. "},
	{v1alpha1.InitiateNodeDeletion, "Removal of finalizers from Node Object ", ", Retrying. "},
	{v1alpha1.InitiateNodeDeletion, "Deletion of Node Object ", ". "},

	{v1alpha1.InitiateFinalizerRemoval, "Label \"node\" not present on machine ", ", continuing deletion flow. "},
	{v1alpha1.InitiateFinalizerRemoval, "No node object found for ", ", continuing deletion flow. "},
	{v1alpha1.InitiateFinalizerRemoval, "Deletion of Node Object ", " is successful. "},
}

// TakeOver returns which steps of the deletion of a machine are done. Nothing else that is done to a VM or
// a Node follows from the description of an operation.
//
// MCM ends the description with the marker of the next step of a deletion. A marker at another
// place may be the text of a provider. So only a description of a known form counts, and only for a
// machine in phase Terminating. With an unknown description the drain is repeated.
//
// A drain counts only if the condition Terminating of the Node is older than the description. The
// condition is set before the drain. A Node with a later condition, or one of the same second, may
// have joined afterwards. A description from the future does not count.
//
// A deleted VM saves the wait for a provider that may not list new VMs yet. Its deletion is
// requested once more. The last steps count as a deleted VM. Whether a Node exists is observed.
func TakeOver(m *v1alpha1.Machine, node *corev1.Node, now time.Time) TakenOver {
	op := m.Status.LastOperation
	if m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating || op.Type != v1alpha1.MachineOperationDelete {
		return TakenOver{}
	}
	step := stepOf(WithoutWaits(op.Description))
	switch step {
	case v1alpha1.InitiateNodeDeletion, v1alpha1.InitiateFinalizerRemoval:
		return TakenOver{Drained: true, Detached: true, VMDeleted: true}
	case "":
		return TakenOver{}
	}
	if node == nil || op.LastUpdateTime.After(now) {
		return TakenOver{}
	}
	marked := ConditionOf(node.Status.Conditions, v1alpha1.NodeTerminationCondition)
	if marked == nil || !marked.LastTransitionTime.Before(&op.LastUpdateTime) {
		return TakenOver{}
	}
	if step == v1alpha1.DelVolumesAttachments {
		return TakenOver{Drained: true, Forced: true}
	}
	return TakenOver{Drained: true, Detached: true}
}

// stepOf returns the step of a description of a known form, or "".
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
