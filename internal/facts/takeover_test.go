// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The markers of the steps with which MCM ends a description.
const (
	statusStep    = v1alpha1.GetVMStatus
	drainStep     = v1alpha1.InitiateDrain
	detachStep    = v1alpha1.DelVolumesAttachments
	vmStep        = v1alpha1.InitiateVMDeletion
	nodeStep      = v1alpha1.InitiateNodeDeletion
	finalizerStep = v1alpha1.InitiateFinalizerRemoval
)

var (
	nothingDone = facts.TakenOver{}
	drainOver   = facts.TakenOver{Drained: true, Forced: true}
	detachOver  = facts.TakenOver{Drained: true, Detached: true}
	vmOver      = facts.TakenOver{Drained: true, Detached: true, VMDeleted: true}
)

// takenOver returns what is taken over of a description that was written a minute ago, for a Node
// that was marked before.
func takenOver(phase v1alpha1.MachinePhase, kind v1alpha1.MachineOperationType, description string) facts.TakenOver {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m, node := &v1alpha1.Machine{}, &corev1.Node{}
	m.Status.CurrentStatus.Phase = phase
	m.Status.LastOperation = v1alpha1.LastOperation{Type: kind, Description: description, LastUpdateTime: metav1.NewTime(now.Add(-time.Minute))}
	node.Status.Conditions = []corev1.NodeCondition{facts.Condition(v1alpha1.NodeTerminationCondition, corev1.ConditionTrue, "", "", now.Add(-time.Hour))}
	return facts.TakeOver(m, node, now)
}

func deletion(description string) facts.TakenOver {
	return takenOver(v1alpha1.MachineTerminating, v1alpha1.MachineOperationDelete, description)
}

func TestTakeOver_EachDescription_Progress(t *testing.T) {
	for want, texts := range map[facts.TakenOver][]string{
		nothingDone: {
			"", statusStep, drainStep,
			"Drain failed due to - x. Will retry in next sync. " + drainStep,
			"Drain failed due to failure in update of node conditions - x. Will retry in next sync. " + drainStep,
			"VM was not found at provider. Moving forward to node drain. " + drainStep,
			"Error occurred with decoding machine error status while getting VM status, aborting with retry. " + statusStep,
			"Getting VM status failed due to - x. However, will re-try in the next resync. " + statusStep, // also of package machine
			drainStep + "; waits for pod/a/b: Refused: " + vmStep,                                         // of package machine, quoting MCM
			"Drain failed due to - " + finalizerStep + ". Will retry in next sync. " + drainStep,          // DM-04
			"Drain successful. and more. " + vmStep,
			"edited: VM deletion was successful. " + nodeStep,
			"Drain failed due to - . However, since it's a force deletion shall continue deletion of VM. " + detachStep + detachStep,
			"Drain failed due to . However, since it's a force deletion shall continue deletion of VM. " + detachStep,
			"VM deletion failed due to - However, will re-try in the next resync. " + vmStep,
		},
		drainOver: {
			detachStep,
			"Force Drain successful. " + detachStep,
			"Drain failed due to - x. However, since it's a force deletion shall continue deletion of VM. " + detachStep,
		},
		detachOver: {
			vmStep,
			"Drain successful. " + vmStep,
			"Skipping drain as nodeName is not a valid one for machine. " + vmStep,
			"Running without target cluster, skipping node drain and volume attachment deletion. " + vmStep,
			"Skipping deleteNodeVolAttachments due to - x. Moving to VM Deletion. " + vmStep,
			"Node Volumes for node: n are already detached. Moving to VM Deletion. " + vmStep,
			"No Live VolumeAttachments for node: n. Moving to VM Deletion. " + vmStep,
			"VM deletion failed due to - x. However, will re-try in the next resync. " + vmStep,
			"VM deletion failed due to - x. Aborting operation. " + vmStep,
			"Error occurred while decoding machine error: x. " + vmStep,
			"VM deletion failed due to - . Aborting operation. " + vmStep,
			"VM deletion failed due to - " + drainStep + ". Aborting operation. " + vmStep, // DM-04: no rewind
			"machineclass/small: the VM cannot be deleted without it. " + vmStep,           // of package machine
			"machineclass/small does not exist: the deletion is forced and does not delete the VM, so a VM may be left. " + vmStep,
		},
		vmOver: {
			nodeStep, finalizerStep,
			"VM deletion was successful. " + nodeStep,
			"VM not found. Continuing deletion flow. " + nodeStep,
			`Retrieval of Node Object "n" failed due to error: x, Retrying. ` + nodeStep,
			`Removal of finalizers from Node Object "n" failed due to error: x, Retrying. ` + nodeStep,
			`Deletion of Node Object "n" failed due to error: x. ` + nodeStep,
			`Label "node" not present on machine "m", continuing deletion flow. ` + finalizerStep,
			`No node object found for "n", continuing deletion flow. ` + finalizerStep,
			`Deletion of Node Object "n" is successful. ` + finalizerStep,
		},
	} {
		for _, text := range texts {
			require.Equal(t, want, deletion(text), text)
		}
	}
}

func TestTakeOver_OtherOperationOrPhase_IsIgnored(t *testing.T) {
	const text = "VM deletion was successful. " + nodeStep
	for _, kind := range []v1alpha1.MachineOperationType{
		"", v1alpha1.MachineOperationCreate, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineOperationDrainNode,
	} {
		require.Equal(t, nothingDone, takenOver(v1alpha1.MachineTerminating, kind, text), kind)
	}
	for _, p := range facts.Phases() {
		require.Equal(t, p == v1alpha1.MachineTerminating, takenOver(p, v1alpha1.MachineOperationDelete, text) == vmOver, p)
	}
}

// FuzzTakeOver asserts that only a whole description of a known form is believed (DM-04).
func FuzzTakeOver(f *testing.F) {
	markers := []string{statusStep, drainStep, detachStep, vmStep, nodeStep, finalizerStep}
	for _, s := range append([]string{
		"", "Drain successful. ", "VM deletion failed due to - x. Aborting operation. ", "; waits for pod/a/b", "\xff", "machineclass/",
		": the VM cannot be deleted without it. ",
	}, markers...) {
		f.Add(s, s, uint8(len(s)))
	}
	f.Fuzz(func(t *testing.T, before, behind string, which uint8) {
		at := int(which) % len(markers)
		text := before + markers[at] + behind
		got := deletion(text)
		require.False(t, got.VMDeleted && !got.Detached || got.Detached && !got.Drained, "%+v skips a step", got)
		ends := false
		for _, m := range markers[2:] {
			ends = ends || strings.HasSuffix(text, m)
		}
		require.True(t, ends || got == nothingDone, "%+v is taken over of a marker that is not the end", got)
		for _, m := range markers {
			require.Equal(t, nothingDone, deletion(drainStep+"; waits for pod/a/b: "+before+m), "a quotation")
		}
		// A later marker takes over no less.
		for _, later := range markers[at:] {
			more := deletion(later)
			require.False(t, got.Drained && !more.Drained && behind == "" || got.VMDeleted && behind == "" && before == "" && !more.VMDeleted,
				"%+v of %q, but %+v of %q", got, markers[at], more, later)
		}
		require.Equal(t, nothingDone, takenOver(v1alpha1.MachineRunning, v1alpha1.MachineOperationDelete, text))
	})
}
