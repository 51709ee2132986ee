// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// sharer is another machine with the same provider ID, spelled in another way.
func sharer(name string) *v1alpha1.Machine {
	m := newMachine(name)
	m.UID, m.Spec.ProviderID = machineUID("uid-"+name), "Simulated:///1/"
	return m
}

// shared returns machine m, which is being deleted, beside one with its provider ID. The provider
// has the VM with the ID vmOfName for its name. The Node has the name of a machine, if that is not
// empty, and no mark.
func shared(nodeNames, vmOfName string, changes ...change) machine.Observation {
	in := after(withID, phase(v1alpha1.MachineTerminating), node(ready(corev1.ConditionTrue)))
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	in.Node.Node.Spec.ProviderID = "simulated:///1"
	unmark(in.Node.Node).Labels = map[string]string{v1alpha1.MachineNameLabelKey: nodeNames}
	in.ProviderID = machine.ProviderIDView{Compared: true, Others: []*v1alpha1.Machine{nil, in.Machine, sharer("b"), newMachine("c")}}
	in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: vmOfName}
	in.Attachments.Looked = true
	for _, c := range changes {
		c(&in)
	}
	return in
}

// unmark removes the record of the proof from a Node, and returns the Node.
func unmark(n *corev1.Node) *corev1.Node {
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, v1alpha1.MachineUIDAnnotation)
	return n
}

// outcome carries out what comes first, and returns what is decided of the VM.
func outcome(t *testing.T, in machine.Observation) (machine.Decision, machine.Observation) {
	t.Helper()
	w := newWorld(in)
	for range 8 {
		goesOn, err := w.step()
		require.NoError(t, err)
		if operationOf(w.last.Action) == driver.OpDeleteMachine || !goesOn {
			break
		}
	}
	return w.last, w.in
}

func TestSharedProviderID_Deletion_OnlyByOwner(t *testing.T) {
	const byID, byName, waits = "delete the VM", "delete the VM that has the name of the machine", "waits"
	blind := func(in *machine.Observation) { in.VM.Blind = true }
	mark := onNode(func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: "uid-m"} })
	for name, tc := range map[string]struct {
		in   machine.Observation
		want string
	}{
		"the VM of its name":                            {shared("", "simulated:///1"), byID},
		"the VM of its name, and another's on the Node": {shared("b", "simulated:///1"), byID},
		"another VM has its name":                       {shared("m", "simulated:///3"), byName},
		"no VM has its name":                            {shared("m", ""), byName},
		"a mark on the Node":                            {shared("b", "", mark), byID},
		"the provider cannot say":                       {shared("m", "", blind), waits},
		"the provider cannot say, and force":            {shared("m", "", blind, byForce), byName},
		"the node of another VM proves none":            {shared("m", "", mark, otherNode), byName},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := outcome(t, tc.in)
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
	in := shared("m", "simulated:///1")
	in.ProviderID = machine.ProviderIDView{}
	d, _ := outcome(t, in)
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
	m := statusOf(d.Action)
	require.NotNil(t, m)
	events := machine.Events(in.Machine, m)
	require.Len(t, events, 1)
	require.EqualValues(t, "ProviderIDShared", events[0].Reason)
	require.Contains(t, events[0].Message, "it is also the provider ID of machine a, b")
	in.Machine = m
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
		in.ProviderID = machine.ProviderIDView{Compared: r.IntN(4) > 0, Others: []*v1alpha1.Machine{sharer("b")}}
		in.VM.Named = machine.NamedVM{AskedAt: now, ProviderID: pick(r, "", "simulated:///1", "simulated:///3")}
		if node := in.Node.Node; node != nil {
			node.Spec.ProviderID = pick(r, "", "simulated:///1", "simulated:///2")
			node.Labels = map[string]string{v1alpha1.MachineNameLabelKey: pick(r, "", in.Machine.Name, "b")}
			node.Annotations = map[string]string{v1alpha1.MachineUIDAnnotation: pick(r, "", string(in.Machine.UID), "uid-b")}
		}
		d, in := outcome(t, in)
		if a, ok := d.Action.(machine.CallDriver); ok && a.Operation == driver.OpDeleteMachine && !a.ByName {
			deletions++
			node, named := in.Node.Node, in.VM.Named.ProviderID
			marked := node != nil && node.Spec.ProviderID == "simulated:///1" && node.Annotations[v1alpha1.MachineUIDAnnotation] == string(in.Machine.UID)
			require.True(t, in.ProviderID.Compared && (named == "simulated:///1" || named == "" && marked), "seed %d: %s", seed, d)
		}
	}
	require.Greater(t, deletions, 20)
}
