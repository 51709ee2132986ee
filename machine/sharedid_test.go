// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// sharer is another machine with the same provider ID, spelled in another way.
func sharer(name string) *v1alpha1.Machine {
	m := newMachine(name)
	m.UID, m.Spec.ProviderID = machineUID("uid-"+name), "Simulated:///1/"
	return m
}

// shared returns machine m, which is being deleted, beside one with its provider ID.
// The Node carries the name of a machine, if that is not empty.
func shared(nodeNames, listedFor string, changes ...change) machine.Observation {
	in := after(withID, phase(v1alpha1.MachineTerminating), node(ready(corev1.ConditionTrue)))
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	in.Node.Node.Spec.ProviderID = "simulated:///1"
	in.Node.Node.Labels = map[string]string{v1alpha1.MachineNameLabelKey: nodeNames}
	in.ProviderID = machine.ProviderIDView{Compared: true, Others: []*v1alpha1.Machine{nil, in.Machine, sharer("b"), newMachine("c")}, ListedFor: listedFor}
	in.Attachments.Looked = true
	for _, c := range changes {
		c(&in)
	}
	return in
}

// outcome carries out what comes first, and returns what is decided of the VM.
func outcome(t *testing.T, in machine.Observation) machine.Decision {
	t.Helper()
	w := newWorld(in)
	for range 8 {
		goesOn, err := w.step()
		require.NoError(t, err)
		if _, calls := w.last.Action.(machine.DeleteVM); calls || !goesOn {
			break
		}
	}
	return w.last
}

func TestSharedProviderID_Deletion_OnlyByOwner(t *testing.T) {
	const byID, byName, waits = "delete the VM", "delete the VM that has the name of the machine", "waits"
	for name, tc := range map[string]struct {
		in   machine.Observation
		want string
	}{
		"its own name on the node":           {shared("m", ""), byID},
		"the other's name on the node":       {shared("b", ""), byName},
		"the other's name in the list":       {shared("", "b"), byName},
		"no proof":                           {shared("", ""), waits},
		"proofs that disagree":               {shared("m", "b"), waits},
		"the name of a machine without it":   {shared("", "c"), waits},
		"no proof, and force":                {shared("", "", byForce), byName},
		"the node of another VM proves none": {shared("m", "", otherNode), waits},
	} {
		t.Run(name, func(t *testing.T) {
			d := outcome(t, tc.in)
			if tc.want == waits {
				require.Nil(t, d.Action, d.String())
				require.Equal(t, machine.ReasonProviderIDShared, d.Reason)
				require.Equal(t, "machine/b", d.Holds[0].Subject)
				require.NotZero(t, d.NextCheck)
				return
			}
			require.NotNil(t, d.Action, d.String())
			require.Equal(t, tc.want, d.Action.String())
		})
	}
	in := shared("m", "m")
	in.ProviderID = machine.ProviderIDView{}
	d := outcome(t, in)
	require.Nil(t, d.Action, "the provider IDs were not compared: %s", d)
	require.Equal(t, machine.ReasonProviderIDShared, d.Reason)
}

// otherNode gives the Node the provider ID of another VM.
var otherNode change = func(in *machine.Observation) {
	in.Node.Node = in.Node.Node.DeepCopy()
	in.Machine.Spec.ProviderID = "simulated:///2"
	other := sharer("b")
	other.Spec.ProviderID = "simulated:///2"
	in.ProviderID.Others = []*v1alpha1.Machine{other}
}

func TestSharedProviderID_BothMachines_ConditionAndEvent(t *testing.T) {
	in := after(withID, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), copied)
	in.ProviderID.Others = []*v1alpha1.Machine{sharer("b"), sharer("a")}
	d := lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, machine.ReasonProviderIDShared, d.Reason)
	w, ok := d.Action.(machine.UpdateStatus)
	require.True(t, ok)
	events := machine.Events(in.Machine, w.Machine)
	require.Len(t, events, 1)
	require.EqualValues(t, "ProviderIDShared", events[0].Reason)
	require.Contains(t, events[0].Message, "it is also the provider ID of machine a, b")
	in.Machine = w.Machine
	require.Equal(t, machine.ReasonNodeReady, lawful(t, in, machine.DefaultPolicy()).Reason, "else it lives as before")
	in.ProviderID.Others = nil
	require.Equal(t, machine.ReasonConditionsChanged, lawful(t, in, machine.DefaultPolicy()).Reason, "it is over")
}

// TestSharedProviderID_Law_NoDeletionWithoutProof asserts that whatever is known, no machine
// deletes by its provider ID a VM that is not proved to be its own.
func TestSharedProviderID_Law_NoDeletionWithoutProof(t *testing.T) {
	t.Parallel()
	deletions := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 6))
		in := anyExit(r)
		in.Machine.Spec.ProviderID = "simulated:///1"
		in.ProviderID = machine.ProviderIDView{Compared: r.IntN(4) > 0, Others: []*v1alpha1.Machine{sharer("b")}, ListedFor: pick(r, "", "m", "b", "c")}
		proved := in.ProviderID.Compared && in.ProviderID.ListedFor == in.Machine.Name
		if node := in.Node.Node; node != nil {
			node.Spec.ProviderID = pick(r, "", "simulated:///1", "simulated:///2")
			node.Labels = map[string]string{v1alpha1.MachineNameLabelKey: pick(r, "", in.Machine.Name, "b")}
			if name := node.Labels[v1alpha1.MachineNameLabelKey]; node.Spec.ProviderID == "simulated:///1" && name != "" {
				proved = in.ProviderID.Compared && name == in.Machine.Name && (in.ProviderID.ListedFor == "" || in.ProviderID.ListedFor == name)
			}
		}
		d := outcome(t, in)
		if a, ok := d.Action.(machine.DeleteVM); ok && !a.ByName {
			deletions++
			require.True(t, proved, "seed %d: %s", seed, d)
		}
	}
	require.Greater(t, deletions, 20)
}
