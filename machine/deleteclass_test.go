// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// These are DM-36 and M-6: what a deletion needs may be gone before.

const (
	noClassText = "machineclass/small: the VM cannot be deleted without it. Initiate VM deletion"
	leftText    = "machineclass/small does not exist: by force the machine goes without deleting its VM, so simulated:///1 may be left. Initiate VM deletion"
)

func TestAMissingClassHoldsTheVMAndNothingBefore(t *testing.T) {
	t.Parallel()
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached("csi-1"), noClass))
	for range 7 {
		require.True(t, x.next(t))
	}
	require.Equal(t, []string{stepMark, stepBegin, stepDrain, stepBegin, stepBegin, stepDrain, stepBegin}, x.did)
	require.Equal(t, noClassText, x.told[len(x.told)-1])
	d := machine.Decide(x.in, x.policy, x.now)
	require.Nil(t, d.Do)
	require.Equal(t, "machineclass/small", d.Holds[0].Subject)
	require.False(t, d.NextCheck.IsZero())
	x.in.Class.Class = class()
	require.IsType(t, machine.DeleteVM{}, machine.Decide(x.in, x.policy, x.now).Do, "once it is back, it goes on at once")
}

func TestAPersonCanForceAMachineOutWithoutItsClass(t *testing.T) {
	t.Parallel()
	x := newWorld(after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached("csi-1"), noClass, byForce))
	x.run(t)
	require.Equal(t, []string{stepBegin, stepMark, stepDrain, stepDetach, stepBegin, stepBegin, stepNode, stepRelease}, x.did)
	require.Equal(t, []string{v1alpha1.GetVMStatus, noClassText, leftText}, x.told)
	require.Equal(t, now.Add(time.Minute), x.now, "a class that is about to be made again has its time")

	// People are told.
	waits, goes := x.in.Machine.DeepCopy(), x.in.Machine
	waits.Status.LastOperation.Description, waits.Status.LastOperation.ErrorCode = noClassText, ""
	events := machine.Events(waits, goes)
	require.Len(t, events, 1)
	require.Equal(t, "Warning FailedPrecondition Delete failed: "+leftText, events[0].String())
}

func TestForceDoesNotHurryWhereNothingIsMissing(t *testing.T) {
	t.Parallel()
	since := func(ago time.Duration, text string) change {
		return spec(func(m *v1alpha1.Machine) {
			m.Status.LastOperation = v1alpha1.LastOperation{
				Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateFailed, Description: text, LastUpdateTime: metav1.NewTime(now.Add(-ago)),
			}
		})
	}
	left := since(0, leftText)
	coded := spec(func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "FailedPrecondition" })
	wait := "nothing (ClassMissing: the VM cannot be deleted without it); waits for machineclass/small: ClassMissing: the VM cannot be deleted without it"
	unlooked := func(in *machine.Observation) { in.Class = machine.ClassView{} }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a class is waited for, a minute long":           {terminating(noClass, byForce, since(59*time.Second, noClassText)), wait},
		"then it is written down":                        {terminating(noClass, byForce, since(time.Minute, noClassText)), `record phase "Terminating", Delete Failed (ClassMissing: ` + leftText + ")"},
		"then the machine goes":                          {terminating(noClass, byForce, left, coded), "update machine: no finalizer (Released)"},
		"and its Node":                                   {terminating(noClass, byForce, left, coded, node(), markedNode), "delete node n (ClassMissing)"},
		"not if somebody has changed his mind":           {terminating(noClass, left, coded), `record phase "Terminating", Delete Failed (ClassMissing: ` + noClassText + ")"},
		"nor if the class is back":                       {terminating(byForce, left, coded), "delete the VM (Drained)"},
		"nor if nobody has looked for it":                {terminating(byForce, left, coded, unlooked), "nothing (ClassMissing: nobody has looked); waits for machineclass/small: ClassMissing: nobody has looked"},
		"a label that says no forces nothing":            {terminating(noClass, since(time.Hour, noClassText), spec(func(m *v1alpha1.Machine) { m.Labels = map[string]string{"force-deletion": "false"} })), wait},
		"a machine whose VM has no name that is known":   {terminating(noClass, nameless, byForce, since(time.Minute, noClassText)), `record phase "Terminating", Delete Failed (ClassMissing: machineclass/small does not exist: by force the machine goes without deleting its VM, so one may be left. Initiate VM deletion)`},
		"a machine whose class has no name names itself": {terminating(noClass, spec(func(m *v1alpha1.Machine) { m.Spec.Class.Name = "" })), `record phase "Terminating", Delete Failed (ClassMissing: machine/m: the VM cannot be deleted without it. Initiate VM deletion)`},
	})
	require.Equal(t, now.Add(time.Second), machine.Decide(terminating(noClass, byForce, since(59*time.Second, noClassText)), machine.Policy{}, now).NextCheck)
}

// markedNode says that it was told long ago that it goes.
var markedNode = onNode(func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{markedAgo(time.Hour)} })

func TestAnInvalidClassOrMachineNeverHoldsADeletion(t *testing.T) {
	t.Parallel()
	whole := []string{stepMark, stepBegin, stepDrain, stepVM, stepNode, stepRelease}
	for name, c := range map[string]change{
		"no secret":              noSecret,
		"no finalizer":           func(in *machine.Observation) { in.Class.Class.Finalizers = nil },
		"no node template":       func(in *machine.Observation) { in.Class.Class.NodeTemplate = nil },
		"an empty node template": func(in *machine.Observation) { in.Class.Class.NodeTemplate = &v1alpha1.NodeTemplate{} },
		"class being deleted":    func(in *machine.Observation) { in.Class.Class.DeletionTimestamp = &metav1.Time{Time: now} },
		"another kind":           spec(func(m *v1alpha1.Machine) { m.Spec.Class.Kind = "Other" }),
		"no kind":                spec(func(m *v1alpha1.Machine) { m.Spec.Class.Kind = "" }),
		"needs a token":          func(in *machine.Observation) { in.Class.NeedsToken = true },
	} {
		in := after(withID, leaving, phase(v1alpha1.MachineRunning), node(), attached(), c)
		in.Tokens.Looked = true
		require.Equal(t, whole, newWorld(in).run(t).did, name)
	}
}
