// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var deletedAttachments change = func(in *machine.Observation) {
	for _, va := range in.Attachments.Attachments {
		va.DeletionTimestamp = &metav1.Time{Time: now}
	}
}

func TestSection12_3ObtainingTheNodeName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   machine.Observation
		look []error
		want []string
	}{
		"without a cluster nothing is drained (§24)": {
			after(leaving, intended, noTarget), nil, []string{stepBegin, stepVM, stepVM, stepRelease}},
		"the label is there": {
			after(leaving, withID), nil, []string{stepBegin, stepVM, stepRelease}},
		"a Node names the machine (DM-32: no write conflicts)": {
			after(leaving, intended, attached(), node(marked)), nil, []string{stepName, stepBegin, stepDrain, stepVM, stepVM, stepNode, stepRelease}},
		"the driver knows it": {
			after(leaving, intended), nil, []string{stepLook, stepName, stepBegin, stepVM, stepVM, stepRelease}},
		"Unimplemented": {
			after(leaving, intended), []error{status.Error(codes.Unimplemented, "x")}, []string{stepLook, stepBegin, stepVM, stepLook, stepName, stepVM, stepRelease}},
		"NotFound": {
			after(leaving, intended), []error{status.Error(codes.NotFound, "x")}, []string{stepLook, stepBegin, stepVM, stepLook, stepName, stepVM, stepRelease}},
		"a failure is told and repeated": {
			after(leaving, intended), []error{status.Error(codes.Unavailable, "x")}, []string{stepLook, stepBegin, stepLook, stepName, stepVM, stepVM, stepRelease}},
		"three failures end it (DM-50, C-4: a deletion goes on)": {
			after(leaving, intended), []error{status.Error(codes.Internal, "x"), status.Error(codes.Internal, "x"), errors.New("x")},
			[]string{stepLook, stepBegin, stepLook, stepLook, stepVM, stepRelease}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newWorld(tc.in)
			e.look = tc.look
			require.Equal(t, tc.want, e.run(t).did)
		})
	}
}

// failedLooks are as many as are made.
var failedLooks = vm(machine.VMView{Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-time.Hour), Failure: machine.CallFailure{
	Operation: driver.OpGetMachineStatus, Code: codes.Internal, Attempts: 3, At: now.Add(-time.Hour),
}})

// Rows 3 to 5 of §13.1: what a force does not wait for.
func TestSection12_4ForceDoesNotWaitForAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	// 3, 3': the condition is set first; by force it is not waited for more than a minute.
	in := terminating(node(), attached(), byForce)
	require.Equal(t, stepDrain, firstWords(machine.Decide(in, p, now)), "the deletion is a minute old")
	require.IsType(t, machine.SetNodeCondition{}, machine.Decide(in, p, now.Add(-time.Second)).Do)
	in = terminating(node(), attached())
	require.IsType(t, machine.SetNodeCondition{}, machine.Decide(in, p, now).Do, "without force it is")
	// 4', 5': a drain by force that does not end is given up after a minute.
	in = terminating(node(marked), attached(), byForce)
	mode := machine.DrainModeFor(in.Machine, in.Node.Node, p, now)
	failed := machine.DrainView{NextCheck: now.Add(5 * time.Second)}
	in.Drain = in.Drain.After(mode, failed, now)
	d := machine.Decide(in, p, now)
	require.Nil(t, d.Do)
	for at := now; at.Before(now.Add(time.Minute)); at = at.Add(5 * time.Second) {
		in.Drain = in.Drain.After(mode, machine.DrainView{NextCheck: at.Add(time.Hour)}, at)
		require.Nil(t, machine.Decide(in, p, at).Do)
		require.Equal(t, now.Add(time.Minute), machine.Decide(in, p, at).NextCheck)
	}
	require.IsType(t, machine.DeleteVM{}, machine.Decide(in, p, now.Add(time.Minute)).Do)
	// 5: without force it goes on for ever.
	in = terminating(node(marked), attached())
	in.Drain = in.Drain.After(machine.DrainModeFor(in.Machine, in.Node.Node, p, now), failed, now)
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, p, now.Add(time.Hour)).Do)
}

// A label that is set while a drain is under way has its effect at once (DM-17).
func TestSection12_4TheLabelForceDeletionWorksAtAnyTime(t *testing.T) {
	t.Parallel()
	p := machine.Policy{}
	in := terminating(node(marked), attached())
	round := machine.DrainView{NextCheck: now.Add(time.Hour)}
	in.Drain = in.Drain.After(machine.DrainModeFor(in.Machine, in.Node.Node, p, now), round, now.Add(-time.Second))
	require.Nil(t, machine.Decide(in, p, now).Do)
	byForce(&in)
	a, ok := machine.Decide(in, p, now).Do.(machine.DrainNode)
	require.True(t, ok)
	in.Drain = in.Drain.After(a.Mode, round, now)
	require.Nil(t, machine.Decide(in, p, now).Do, "once")
}

func TestSection12_5VolumeAttachments(t *testing.T) {
	t.Parallel()
	forced := func(changes ...change) machine.Observation {
		return terminating(append([]change{byForce, node(marked), drainedByForce}, changes...)...)
	}
	other := func(in *machine.Observation) { in.Attachments.Attachments[0].Spec.NodeName = "another" }
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a cluster nobody has looked at is waited for":       {forced(unseen), "nothing (NodeNotObserved); waits for node/n: NodeNotObserved"},
		"a Node that is missing has no attachments":          {terminating(byForce, attached("csi-1")), "delete the VM (Drained)"},
		"a Node without attachments goes on":                 {forced(attached()), "delete the VM (Drained)"},
		"live ones are deleted":                              {forced(attached("csi-2", "csi-1")), "delete volume attachments csi-1, csi-2 (Detaching)"},
		"those of other Nodes are not":                       {forced(attached("csi-1"), other), "delete the VM (Drained)"},
		"those that are going are not waited for":            {forced(attached("csi-1"), deletedAttachments), "delete the VM (Drained)"},
		"attachments nobody has looked for are waited for":   {forced(), "nothing (Detaching: nobody has looked for its volume attachments); waits for node/n: Detaching: nobody has looked for its volume attachments"},
		"after a drain without force nobody looks for them":  {terminating(node(marked), drained, func(in *machine.Observation) { in.Attachments.Looked = false }), "delete the VM (Drained)"},
		"which has waited for those that pods had":           {terminating(node(marked), drained, attached("csi-1")), "delete the VM (Drained)"},
		"once the VM is gone, nobody is":                     {terminating(node(marked), drained, attached("csi-1"), answered(machine.Deleted, 0)), "delete node n (VMGone)"},
		"what the Node says of its volumes does not matter":  {forced(attached("csi-1"), onNode(func(n *corev1.Node) { n.Status.VolumesAttached = nil })), "delete volume attachments csi-1 (Detaching)"},
		"a drain that was for something else does not count": {terminating(node(marked), attached(), func(in *machine.Observation) { in.Drain = drainedBefore }), "drain node n, by force from 2026-03-01T13:59:00Z (Draining)"},
		"what cannot be deleted for a minute is left (I-18)": {forced(attached("csi-1"), func(in *machine.Observation) { in.Attachments.AskedAt = now.Add(-time.Minute) }), "delete the VM (Drained)"},
		"but is tried for as long":                           {forced(attached("csi-1"), func(in *machine.Observation) { in.Attachments.AskedAt = now.Add(-59 * time.Second) }), "delete volume attachments csi-1 (Detaching)"},
		"what nobody looks for in a minute is left too (I-18)": {terminating(byForce, node(marked), func(in *machine.Observation) {
			in.Drain = machine.DrainView{Round: now, Done: true, DoneAt: now.Add(-time.Minute)}
		}), "delete the VM (Drained)"},
	})
}

var (
	drainedByForce change = func(in *machine.Observation) {
		started := in.Machine.DeletionTimestamp.Time
		in.Drain = machine.DrainView{Started: started, ForceAt: started, Round: now, Done: true, DoneAt: now, ForcedAt: now}
	}
	// drainedBefore is the drain of an update in place.
	drainedBefore = machine.DrainView{Started: now.Add(-time.Hour), Round: now, Done: true, DoneAt: now}
)

func written(t *testing.T, in machine.Observation) *v1alpha1.Machine {
	t.Helper()
	a, ok := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.UpdateStatus)
	require.True(t, ok)
	return a.Machine
}

func TestSection12_7DeletingTheNode(t *testing.T) {
	t.Parallel()
	gone := answered(machine.Deleted, 0)
	deleting := func(finalizers ...string) change {
		return onNode(func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: now}, finalizers })
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"without a label there is no Node":               {terminating(nameless, gone), "update machine: no finalizer (Released)"},
		"a Node that is missing is not waited for":       {terminating(gone), "update machine: no finalizer (Released)"},
		"a Node nobody has looked for is waited for":     {terminating(gone, unseen), "nothing (NodeNotObserved); waits for node/n: NodeNotObserved"},
		"the Node is deleted":                            {terminating(gone, node(marked)), "delete node n (VMGone)"},
		"also one that lacks our finalizer":              {terminating(gone, node(marked), onNode(func(n *corev1.Node) { n.Finalizers = nil })), "delete node n (VMGone)"},
		"our finalizer goes also if it is being deleted": {terminating(gone, node(marked), deleting("x", v1alpha1.NodeFinalizerName)), "delete node n (VMGone)"},
		"those of others hold it, not the machine":       {terminating(gone, node(marked), deleting("x")), "update machine: no finalizer (Released)"},
	})
	d := machine.Decide(terminating(gone, node(marked)), machine.DefaultPolicy(), now)
	require.Equal(t, machine.DeleteNode{NodeName: "n", UID: "node-uid"}, d.Do, "a later Node of the same name is safe")
	require.False(t, d.NextCheck.IsZero(), "an effect that is lost is repeated")
}

func firstWords(d machine.Decision) string {
	if d.Do == nil {
		return d.String()
	}
	s := d.Do.String()
	return s[:min(len(s), len(stepDrain))]
}
