// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// progress is the part of a deletion that can be continued, as the decision shows it.
type progress struct{ drained, detached, vmDeleted bool }

// takenOver finds out by asking what the next step is.
func takenOver(changes ...change) progress {
	p := machine.DefaultPolicy()
	decide := func(more ...change) machinist.Action {
		return machine.Decide(terminating(append(more, changes...)...), p, now).Action
	}
	var got progress
	switch a := decide(node(markedAgo(time.Hour)), attached("csi-1")).(type) {
	case machine.CallDriver:
		got.drained, got.detached = a.Operation == driver.OpDeleteMachine, a.Operation == driver.OpDeleteMachine
	case machine.DeleteAttachments:
		got.drained = true
	}
	// A deletion that found nothing is believed at once only if it was known before.
	u, _ := decide(justNow, answered(machine.Absent, 0)).(machinist.Update)
	got.vmDeleted = isMachine(u) && u.Subresource == ""
	return got
}

// The descriptions that MCM writes while it deletes a machine, and
// our own.
const (
	markerA = v1alpha1.GetVMStatus
	markerB = v1alpha1.InitiateDrain
	markerC = v1alpha1.DelVolumesAttachments
	markerD = v1alpha1.InitiateVMDeletion
	markerE = v1alpha1.InitiateNodeDeletion
	markerF = v1alpha1.InitiateFinalizerRemoval
)

var (
	nothingDone = progress{}
	drainOver   = progress{drained: true}
	detachOver  = progress{drained: true, detached: true}
	vmOver      = progress{true, true, true}
)

func TestTakeOver_EachDescription_Decision(t *testing.T) {
	for text, want := range map[string]progress{
		"":                                   nothingDone,
		markerA:                              nothingDone,
		markerB:                              nothingDone,
		markerC:                              drainOver,
		markerD:                              detachOver,
		markerE:                              vmOver,
		markerF:                              vmOver,
		"Force Drain successful. " + markerC: drainOver,
		"Drain failed due to - x. However, since it's a force deletion shall continue deletion of VM. " + markerC:    drainOver,
		"Drain failed due to - x. Will retry in next sync. " + markerB:                                               nothingDone,
		"Drain failed due to failure in update of node conditions - x. Will retry in next sync. " + markerB:          nothingDone,
		"VM was not found at provider. Moving forward to node drain. " + markerB:                                     nothingDone,
		"Error occurred with decoding machine error status while getting VM status, aborting with retry. " + markerA: nothingDone,
		"Drain successful. " + markerD:                                                                                          detachOver,
		"Skipping drain as nodeName is not a valid one for machine. " + markerD:                                                 detachOver,
		"Running without target cluster, skipping node drain and volume attachment deletion. " + markerD:                        detachOver,
		"Skipping deleteNodeVolAttachments due to - x. Moving to VM Deletion. " + markerD:                                       detachOver,
		"Node Volumes for node: n are already detached. Moving to VM Deletion. " + markerD:                                      detachOver,
		"No Live VolumeAttachments for node: n. Moving to VM Deletion. " + markerD:                                              detachOver,
		"VM deletion failed due to - x. However, will re-try in the next resync. " + markerD:                                    detachOver,
		"VM deletion failed due to - x. Aborting operation. " + markerD:                                                         detachOver,
		"Error occurred while decoding machine error: x. " + markerD:                                                            detachOver,
		"VM deletion was successful. " + markerE:                                                                                vmOver,
		"VM not found. Continuing deletion flow. " + markerE:                                                                    vmOver,
		`Retrieval of Node Object "n" failed due to error: x, Retrying. ` + markerE:                                             vmOver,
		`Removal of finalizers from Node Object "n" failed due to error: x, Retrying. ` + markerE:                               vmOver,
		`Deletion of Node Object "n" failed due to error: x. ` + markerE:                                                        vmOver,
		`Label "node" not present on machine "m", continuing deletion flow. ` + markerF:                                         vmOver,
		`No node object found for "n", continuing deletion flow. ` + markerF:                                                    vmOver,
		`Deletion of Node Object "n" is successful. ` + markerF:                                                                 vmOver,
		"Getting VM status failed due to - x. However, will re-try in the next resync. " + markerA:                              nothingDone, // ours
		"machineclass/small: the VM cannot be deleted without it. " + markerD:                                                   detachOver,  // ours
		markerB + "; waits for pod/a/b: Refused: " + markerD:                                                                    nothingDone, // of this package, quoting MCM
		"Drain failed due to - " + markerF + ". Will retry in next sync. " + markerB:                                            nothingDone, // DM-04
		"VM deletion failed due to - " + markerB + ". Aborting operation. " + markerD:                                           detachOver,  // DM-04: no rewind
		"Drain successful. and more. " + markerD:                                                                                nothingDone,
		"edited: VM deletion was successful. " + markerE:                                                                        nothingDone,
		"Drain failed due to - . However, since it's a force deletion shall continue deletion of VM. " + markerC + markerC:      nothingDone,
		"Drain failed due to . However, since it's a force deletion shall continue deletion of VM. " + markerC:                  nothingDone,
		"VM deletion failed due to - . Aborting operation. " + markerD:                                                          detachOver,
		"VM deletion failed due to - However, will re-try in the next resync. " + markerD:                                       nothingDone,
		"machineclass/small does not exist: the deletion is forced and does not delete the VM, so a VM may be left. " + markerD: detachOver,
	} {
		require.Equal(t, want, takenOver(handed(text)), text)
	}
}

func TestTakeOver_OtherOperationOrPhase_IsIgnored(t *testing.T) {
	text := handed("VM deletion was successful. " + markerE)
	require.Equal(t, vmOver, takenOver(text))
	for _, kind := range []v1alpha1.MachineOperationType{"", v1alpha1.MachineOperationCreate, v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineOperationDrainNode} {
		other := spec(func(m *v1alpha1.Machine) { m.Status.LastOperation.Type = kind })
		require.Equal(t, nothingDone, takenOver(text, other), kind)
	}
	for _, p := range allPhases {
		if p != v1alpha1.MachineTerminating {
			d := machine.Decide(after(withID, leaving, phase(p), text, node(marked)), machine.DefaultPolicy(), now)
			require.Equal(t, stepBegin, d.Action.String()[:len(stepBegin)], "phase %q begins", p)
		}
	}
}

func TestTakeOver_LaterCondition_NodeIsDrained(t *testing.T) {
	for _, text := range []string{"Drain successful. " + markerD, "Force Drain successful. " + markerC, "VM deletion failed due to - x. Aborting operation. " + markerD} {
		in := terminating(handed(text), attached(), node(markedAgo(30*time.Second)))
		require.IsType(t, machine.DrainNode{}, machine.Decide(in, machine.DefaultPolicy(), now).Action, text)
		in = terminating(handed(text), attached(), node(markedAgo(31*time.Second)))
		require.Equal(t, driver.OpDeleteMachine, operationOf(machine.Decide(in, machine.DefaultPolicy(), now).Action), text)
	}
	// But one whose VM is gone is not worth it.
	in := terminating(handed("VM deletion was successful. "+markerE), attached(), node(markedAgo(0)))
	require.Equal(t, driver.OpDeleteMachine, operationOf(machine.Decide(in, machine.DefaultPolicy(), now).Action))
}

// FuzzTakeOver is DM-04: whatever a description says, only a whole one of a known
// form is believed.
func FuzzTakeOver(fuzz *testing.F) {
	for _, s := range []string{"", markerA, markerB, markerC, markerD, markerE, markerF, "Drain successful. ", "VM deletion failed due to - x. Aborting operation. ", "; waits for pod/a/b", "\xff", "machineclass/", ": the VM cannot be deleted without it. "} {
		fuzz.Add(s, s, uint8(len(s)))
	}
	markers := []string{markerA, markerB, markerC, markerD, markerE, markerF}
	fuzz.Fuzz(func(t *testing.T, before, behind string, which uint8) {
		marker := markers[int(which)%len(markers)]
		got := takenOver(handed(before + marker + behind))
		if got.vmDeleted && !got.detached || got.detached && !got.drained {
			t.Fatalf("%+v skips a step", got)
		}
		ends := false
		for _, m := range markers[2:] {
			ends = ends || strings.HasSuffix(before+marker+behind, m)
		}
		if !ends && got != nothingDone {
			t.Fatalf("%+v is taken over of a marker that is not the end", got)
		}
		for _, m := range markers { // what quotes it takes over no more than it says itself
			quoted := takenOver(handed(markerB + "; waits for pod/a/b: " + before + m))
			if quoted != nothingDone {
				t.Fatalf("%+v is taken over of a quotation", quoted)
			}
		}
		// Of two descriptions that differ in the marker alone, the later one takes over
		// no less, if it takes over anything.
		at := int(which) % len(markers)
		for _, later := range markers[at:] {
			if more := takenOver(handed(later)); got.drained && !more.drained && behind == "" || got.vmDeleted && behind == "" && before == "" && !more.vmDeleted {
				t.Fatalf("%+v of %q, but %+v of %q", got, marker, more, later)
			}
		}
		// A machine that is not Terminating is not asked.
		if v := takenOver(handed(before+marker+behind), spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })); v != nothingDone {
			t.Fatalf("%+v is taken over of a machine that is not Terminating", v)
		}
	})
}
