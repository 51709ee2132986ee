// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestNodeName_AnyName_ProviderIDIsRecordedAndLabelsStayValid answers with Node names
// of every length and spelling. No write of the machine carries a label that the API
// server refuses, and the provider ID is among the first.
func TestNodeName_AnyName_ProviderIDIsRecordedAndLabelsStayValid(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for length := range 254 {
		name := strings.Repeat("a", length)
		if length > 2 && r.IntN(2) == 0 {
			name = name[:length-2] + ".b"
		}
		if length > 0 && r.IntN(4) == 0 {
			name = "-" + name[1:] // valid nowhere
		}
		in := after(intended, phase(""), seen(machine.Uninitialized))
		in.VM.NodeName = name
		d := lawful(t, in, machine.DefaultPolicy())
		w, ok := d.Do.(machine.UpdateMachine)
		require.True(t, ok, "%q: %s", name, d)
		require.NotEmpty(t, w.Machine.Spec.ProviderID)
		for key, value := range w.Machine.Labels {
			require.Empty(t, validation.IsValidLabelValue(value), key)
		}
		require.Equal(t, len(validation.IsValidLabelValue(name)) == 0, w.Machine.Labels[v1alpha1.NodeLabelKey] == name, name)
	}
}

func TestNodeName_Over63Characters_LivesWithoutLabel(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 64)
	long := func(changes ...change) machine.Observation {
		in := after(append([]change{withID, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), copied}, changes...)...)
		delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
		if in.Node.Node != nil {
			in.Node.Node.Name, in.Node.Name = name, name
		}
		return in
	}
	in := long()
	d := lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, machine.ReasonPartlyIgnored, d.Reason, "the cause is on the object")
	require.Contains(t, d.Message, "metadata.labels[node]")
	require.Contains(t, d.Message, "64 characters")
	w, ok := d.Do.(machine.UpdateStatus)
	require.True(t, ok)
	require.Len(t, machine.Events(in.Machine, w.Machine), 1, "and in an Event")
	in.Machine = w.Machine
	require.Equal(t, machine.ReasonNodeReady, lawful(t, in, machine.DefaultPolicy()).Reason, "else it is watched as others")

	in.Node.Node = nil
	d = lawful(t, in, machine.DefaultPolicy())
	require.NotEqual(t, machine.ReasonNodeGone, d.Reason, "its name is not known any more")

	in.VM.NodeName = name
	in.Node = machine.NodeView{Looked: true}
	d = lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Do, "it was not looked for under its name: %s", d)
	require.Equal(t, machine.ReasonNodeNotObserved, d.Reason)
	require.Equal(t, "node/"+name, d.Holds[0].Subject)

	in.Node.Name = name
	require.Equal(t, machine.ReasonNodeGone, lawful(t, in, machine.DefaultPolicy()).Reason)
}

// A deletion drains and deletes the Node although no label names it.
func TestNodeName_Over63Characters_DeletionGoesOn(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 64)
	in := after(withID, phase(v1alpha1.MachineTerminating), node(ready(corev1.ConditionTrue)))
	delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)}
	in.Node.Node.Name, in.Node.Name = name, name
	in.VM.NodeName, in.VM.Sighting = name, machine.Present
	d := lawful(t, in, machine.DefaultPolicy())
	require.IsType(t, machine.SetNodeCondition{}, d.Do, d.String())
	require.Equal(t, name, d.Do.(machine.SetNodeCondition).NodeName)

	in.Node.Node = nil
	d = lawful(t, in, machine.DefaultPolicy())
	require.IsType(t, machine.DeleteVM{}, d.Do, d.String())
	in.Node.Name = ""
	d = lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Do, d.String())
	require.Equal(t, machine.ReasonNodeNotObserved, d.Reason)
}
