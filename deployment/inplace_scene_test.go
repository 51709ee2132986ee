// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestInPlace_SizesFollowMachines(t *testing.T) {
	check(t, []scenarioCase{
		{"the old set has not seen that a machine left", "inplace 3 +0 -1; old 3/3: m1.candidate m2.candidate; new 0: m3.moved", "old 3; new 0; selects m1", "old: SetNotReported: it reports 3 machines, and 2 exist"},
		{"the old set has seen it", "inplace 3 +0 -1; old 3/2: m1.candidate m2.candidate; new 0: m3.moved", "old 3>2; new 0>1", ""},
		{"the new set is cut only after what has come is acknowledged", "inplace 2 +0 -1 want=old; old 2: m1 m2; new 1: m3.moved", "old 2; new 1; acknowledges m3", ""},
		{"the new set has not seen a machine come", "inplace 2 +0 -1; old 0; new 1/1: a b.moved", "old 0; new 1", ""},
		{"the new set has seen a machine come", "inplace 2 +0 -1; old 0; new 1/2: a b.moved", "old 0; new 1>2", ""},
		{"the new set has seen too many come", "inplace 2 +0 -1; old 0; new 1/3: a b.moved", "old 0; new 1", ""},
		{"a machine that moved and has its place waits for no report", "inplace 1 -1; old 0; new 1/0: b.moved", "old 0; new 1; acknowledges b", "!SetNotReported"},
		{"a set grows by what has moved to it, and by no others", "inplace 3 -1; old 0; new 1/3: a b c.moved", "old 0; new 1>2", ""},
		{"what one old set has lost is not cut from another", "inplace 3 -1; older 2/2: a; old 2: b c; new 0", "older 2; old 2; new 0; candidates a b c", ""},
		{"what one old set deletes anyway is not cut from another", "inplace 3 -3; older 1/2: a b; old 2/2: c d; new 0", "older 1 without a; old 2; new 0; candidates b c d", ""},
		{"a new set leaves places for what old sets lack", "inplace 3 +1; old 3/2: a b", "old 3; creates 1", ""},
		{"a set that has not reported on its size", "inplace 1 +0 -0; old 1 unreported; new 0", "old 1; new 0", ""},
		{"a set that has reported and has no machine", "inplace 1 +0 -0; old 1; new 0", "old 1>0; new 0>1", ""},
		{"a set that shrinks because a machine is leaving names it", "inplace 3 +3 -0; old 3: a b.leaving c; new 3/3/0", "old 3>2; new 3; names old[b]; candidates a c", ""},
		{"a set that is kept from growing at once names it, too", "inplace 3 +3 -0; old 3 grows: a b.leaving c; new 3/3/0", "old 3>2; new 3; fixes old; names old[b]; candidates a c", ""},
		{"old sets give together only what is too much", "inplace 3 +0 -3; older 2: c d; old 2: a b; new 0", "older 2>1 without c; old 2; new 0; names older[c]; candidates a b c d", ""},
		{"a preserved machine goes with the last of its set", "inplace 1 +1 -0; old 1/1/0: b.preserved; new 1: a", "old 1>0 without b; new 1", ""},
		{"a gate keeps the preserved machine", "inplace 1 +1 -0 deny=b; old 1/1/0: b.preserved; new 1: a", "old 1; new 1", "b: Gate"},
		{"while machines are replaced, a set grows by one that moved, and is not cut", "rolling 1 +1 -0; old 1/1/1; other 1: b c.moved; new 0", "old 1>0 without old-0; other 1>2; new 0", ""},
		{"a machine more by a move lets one more go", "rolling 3 +1 -0; old 3/3/1; new 1: a b.moved", "old 3>1 without old-1 old-2; new 1>2; names old[old-1 old-2]", ""},
	})
}

func TestInPlace_ScaleUpDisabled(t *testing.T) {
	check(t, []scenarioCase{
		{"the set that is wanted again waits for its report", "inplace 3 +0 -1 want=old; old 3/3 fixed: m1 m2; new 1: m3", "old 3; new 1; candidates m3", ""},
		{"no other set grows by what moved while it waits", "inplace 2 +0 -1 want=old; old 1/1 fixed: ; new 1/2: a b.moved", "old 1; new 1; candidates a", "old: SetNotReported: 0 machines, 1 wanted"},
		{"another set grows by what moved once it has its size", "inplace 2 +0 -1 want=old; old 1/0 fixed: ; new 1/2: a b.moved", "old 1>0; new 1>2; frees old; candidates a", ""},
		{"the label goes with the size of the machines that are left", "inplace 3 +0 -1 want=old; old 3/2 fixed: m1 m2; new 1: m3", "old 3>2; new 1; frees old; candidates m3", ""},
		{"an old set without labels is kept from growing", "inplace 1 +0 -1; old 1 bare: m; new 0", "old 1; new 0; fixes old; candidates m", ""},
		{"an old set that has nothing needs no label", "inplace 1 +0 -1; old 0 grows; new 1: m", "old 0; new 1", ""},
		{"a set that is being deleted is left alone", "inplace 2 +0 -1; old 1 grows deleting: a; new 0", "old 1; new 0>1", ""},
	})
}

func TestInPlace_Moves(t *testing.T) {
	check(t, []scenarioCase{
		{"no more machines move than the new set may have", "inplace 3 +1 -2; old 3: m2.done m3.done m4.done; new 1: m1", "old 3; new 1; moves m2 m3", ""},
		{"a machine stays in a set that would replace it", "inplace 1 +0 -1; old 1 grows: m1.done; new 0", "old 1; new 0; fixes old", "it creates no machines"},
		{"a machine moves to a set that selects it", "inplace 3 +0 -1; old 3: a.done b c; new 0", "old 3; new 0; moves a; candidates b c", ""},
		{"a machine does not move to a set that would not select it", "inplace 3 +0 -1; old 3: a.done b c; new 0 picky", "old 3; new 0; candidates b c", ""},
		{"machines that moved and are not counted yet take their places", "inplace 3 +1 -3; old 3: c.done d.done; new 1/1: a b.moved", "old 3>2; new 1; moves c", ""},
		{"machines that the new set is about to create take their places", "inplace 3 +1 -3; old 2: a.done b.done; new 2", "old 2; new 2; moves a", ""},
		{"a machine that failed after its update stays", "inplace 2 +0 -1; old 2: a.done.failed b.done; new 0", "old 2; new 0; moves b", ""},
		{"an updated machine of the new set is where it belongs", "inplace 2 +0 -1; old 1: a; new 1: b.done", "old 1; new 1; candidates a; returns b", ""},
		{"nothing moves to a set that is being deleted", "inplace 3 +0 -2; old 1: a.done; new 1 deleting: b", "old 1; new 1", "new: SetDeleting"},
		{"nothing moves while paused", "inplace 2 +0 -1 paused; old 2: a.done b.candidate; new 0", "old 2; new 0", "Paused"},
	})
}

func TestInPlace_Candidates(t *testing.T) {
	check(t, []scenarioCase{
		{"a machine of an old set", "manual 2 +0 -1; old 1: m; new 1: n", "old 1; new 1; candidates m", ""},
		{"a machine that joins", "manual 2 +0 -1; old 1: m.pending; new 1: n", "old 1; new 1; candidates m", ""},
		{"a Failed machine is replaced instead", "manual 2 +0 -1; old 1: m.failed; new 1: n", "old 1; new 1", ""},
		{"a machine of the new set is new already", "manual 1 +0 -1; old 0; new 1: m", "old 0; new 1", ""},
		{"a Node of the new set loses its marks", "inplace 1 +0 -1; old 0; new 1: m.selected", "old 0; new 1; returns m", ""},
		{"a pass makes as many as it may write", "manual 3 +0 -1 burst=2; old 3: a b c; new 0", "old 3; new 0; candidates a b", ""},
		{"a selection comes before taints", "inplace 3 +0 -1 burst=1 taint; old 3: a.candidate b.candidate c.candidate.early; new 0", "old 3; new 0; discourages old; selects c; taints c", ""},
		{"a Node that was not looked at holds its machine", "inplace 2 +0 -1; old 1: a.candidate.unlooked; new 1: b", "old 1; new 1", "a: NodeUnknown"},
	})
}

func TestInPlace_Selection(t *testing.T) {
	check(t, []scenarioCase{
		{"one that works is given up for it", "inplace 2 -1; old 2: a.candidate b.candidate; new 0", "old 2; new 0; selects a", ""},
		{"one that is broken comes first", "inplace 2 -1; old 2: a.candidate b.candidate.unknown; new 0", "old 2; new 0; selects b", ""},
		{"one that joins is waited for", "inplace 2 -1; old 2: a.candidate.pending b.candidate; new 0", "old 2; new 0", ""},
		{"one that has not begun is waited for", "inplace 2 -1; old 2: a.candidate.empty b.candidate; new 0", "old 2; new 0", ""},
		{"one that has failed is replaced", "inplace 2 -1; old 2: a.candidate.failed b.candidate; new 0", "old 2; new 0", ""},
		{"one is selected once, and is not available", "inplace 3 -2; old 2: a.selected b.candidate; new 1: c", "old 2; new 1; selects b", ""},
		{"a selected machine is counted once", "inplace 6 -2; old 3: m4.candidate m5.selected m6.candidate; new 3: m1 m2 m3", "old 3; new 3; selects m4", ""},
		{"machines of the new set are not selected", "inplace 2 -2; old 1: b.candidate.pending; new 1: a.candidate", "old 1; new 1; returns a", ""},
		{"no more than the new set has places for", "inplace 3 +1 -3; old 3: m2.selected m3.selected m4.candidate; new 1: m1", "old 3; new 1", "2 machines are being updated in place"},
		{"broken ones only for as many places as there are", "inplace 3 +1 -3; old 2: c.candidate.unknown d.candidate.unknown; new 2: a b", "old 2; new 2; selects c", ""},
		{"broken ones take the places of others", "inplace 3 +1 -3; old 3: b.candidate.unknown c.candidate d.candidate; new 1: a", "old 3; new 1; selects b c", ""},
		{"a broken one waits while another is updated", "inplace 2 -1; old 2: a.selected b.candidate.unknown; new 0", "old 2; new 0", ""},
		{"a broken one waits if the update of another failed", "inplace 2 -1; old 2: a.candidate.updatefailed b.candidate.unknown; new 0", "old 2; new 0", ""},
		{"one of the new set that once failed is no reason to wait", "inplace 2 -1; old 1: b.candidate.unknown; new 1: a.oncefailed", "old 1; new 1; selects b", ""},
		{"one of the new set that is broken is one", "inplace 2 -1; old 1: b.candidate.unknown; new 1: a.unknown", "old 1; new 1", ""},
		{"bounds are for all old sets together, broken", "inplace 2 -1; older 1: b.candidate.unknown; old 1: a.candidate.unknown; new 0", "older 1; old 1; new 0; selects b", ""},
		{"bounds are for all old sets together, working", "inplace 3 -1; older 1: c.candidate; old 2: a.candidate b.candidate; new 0", "older 1; old 2; new 0; selects c", ""},
		{"nothing for a set that is being deleted", "inplace 3 -2; old 1: a.candidate; new 1 deleting: b", "old 1; new 1", "SetDeleting"},
		{"nothing for a set that is being deleted, paused", "inplace 3 -2 paused; old 1: a.candidate; new 1 deleting: b", "old 1; new 1", ""},
		{"an updated machine that cannot move yet has its place", "inplace 1 +1 -1; old 2 grows: a.done b.candidate; new 0", "old 2; new 0; fixes old", ""},
		{"nothing before the Node of an updated machine is returned", "inplace 3 -1; old 2: m2.candidate m3.candidate; new 1: m1.moved.unreturned", "old 2; new 1; returns m1", ""},
		{"nothing before it is returned, one broken", "inplace 3 -1; old 2: m2.candidate.unknown m3.candidate; new 1: m1.moved.unreturned", "old 2; new 1; returns m1", ""},
		{"once it is returned", "inplace 3 -1; old 2: m2.candidate m3.candidate; new 1: m1.moved", "old 2; new 1; acknowledges m1; selects m2", ""},
		{"once it is returned, one broken", "inplace 3 -1; old 2: m2.candidate.unknown m3.candidate; new 1: m1.moved", "old 2; new 1; acknowledges m1; selects m2", ""},
		{"a denied machine is not selected, another is", "inplace 2 -1 deny=a; old 2: a.candidate b.candidate; new 0", "old 2; new 0; selects b", "a: Gate"},
	})
}

func TestInPlace_Acknowledgement(t *testing.T) {
	check(t, []scenarioCase{
		{"a set that has reported on a place for it", "inplace 1 -1; old 0; new 1: m.moved", "old 0; new 1; acknowledges m", ""},
		{"a set that has not reported", "inplace 1 -1; old 0; new 1 unreported: m.moved", "old 0; new 1", ""},
		{"a set that asks for fewer", "inplace 1 -1; old 0; new 0: m.moved", "old 0; new 0>1", ""},
		{"a set that is being deleted", "inplace 1 -1; old 0; new 1 deleting: m.moved", "old 0; new 1", ""},
		{"a machine without a Node", "inplace 1 -1; old 0; new 1: m.moved.nodeless", "old 0; new 1; acknowledges m", ""},
		{"a machine whose Node is not known", "inplace 1 -1; old 0; new 1: m.moved.unlooked", "old 0; new 1", "NodeUnknown"},
	})
}

// TestInPlace_Stages asserts that labels, phases and conditions give the stage of the update of m1.
func TestInPlace_Stages(t *testing.T) {
	check(t, []scenarioCase{
		{"its Node is not known", "inplace 2 -1; old 2: m1.unlooked m2.candidate; new 0", "old 2; new 0; selects m2", ""},
		{"nothing has begun", "inplace 2 -1; old 2: m1 m2; new 0", "old 2; new 0; candidates m1 m2", ""},
		{"a step of an earlier update", "inplace 2 -1; old 2: m1.updated m2; new 0", "old 2; new 0; candidates m1 m2", ""},
		{"selected, and no candidate", "inplace 2 -1; old 2: m1.picked m2.candidate; new 0", "old 2; new 0; candidates m1", ""},
		{"about to be drained", "inplace 2 -1; old 2: m1.candidate.SelectedForUpdate m2.candidate; new 0", "old 2; new 0", ""},
		{"drained", "inplace 2 -1; old 2: m1.candidate.DrainSuccessful m2.candidate; new 0", "old 2; new 0", ""},
		{"it waits for its agent", "inplace 2 -1; old 2: m1.candidate.ReadyForUpdate m2.candidate; new 0", "old 2; new 0", ""},
		{"drained, its Node not known", "inplace 2 -1; old 2: m1.updating.unlooked m2.candidate; new 0", "old 2; new 0", ""},
		{"the agent is done, the machine not", "inplace 2 -1; old 2: m1.done.updating m2.candidate; new 0", "old 2; new 0", ""},
		{"the agent is done, the machine is not told", "inplace 2 -1; old 2: m1.unreturned m2.candidate; new 0", "old 2; new 0", ""},
		{"done", "inplace 2 -1; old 2: m1.done m2.candidate; new 0", "old 2; new 0; moves m1", ""},
		{"failed, and the machine is not told", "inplace 2 -1; old 1: m1.oncefailed; new 1: m2", "old 1; new 1; candidates m1", "m1: UpdatingInPlace: the update in place of 1 machine failed"},
		{"it took too long", "inplace 2 -1; old 2: m1.selected.updatefailed m2.candidate; new 0", "old 2; new 0", ""},
	})
}

// TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted has one available machine, which
// was updated and whose Node is still marked. The others are being updated, and the replicas
// decrease by one.
func TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted(t *testing.T) {
	check(t, []scenarioCase{
		{"moved", "manual 2 -1 paused; old 3: m2.selected m3.selected; new 0: m1.moved.unreturned", "old 3>1 without m2; new 0>1; names old[m2]; returns m1", ""},
		{"done", "manual 2 -1 paused; old 3: m1.done.unreturned m2.selected m3.selected; new 0", "old 3>2 without m2; new 0; names old[m2]", ""},
	})
}

// TestInPlace_NamedMachines shrinks an old set, with and without machines that an autoscaler named.
func TestInPlace_NamedMachines(t *testing.T) {
	check(t, []scenarioCase{
		{"not from a set that has not seen its machines", "inplace 0 -1 named=a; old 1/0: a; new 0", "old 1; new 0; marks a; candidates a", ""},
		{"from a set that sees all it has", "inplace 0 -1 named=a; old 1/1: a; new 0", "old 1>0 without a; new 0; marks a; candidates a", ""},
		{"not if as many are wanted", "inplace 2 -2 named=a; old 2: a b; new 0", "old 2; new 0; marks a; candidates a b", ""},
		{"if fewer are wanted", "inplace 1 -2 named=a; old 2: a b; new 0", "old 2>1 without a; new 0; names old[a]; marks a; candidates a b", ""},
		{"of several sets only so many as are too many", "inplace 2 -2 named=a,c; older 1: c; old 2: a b; new 0", "older 1>0 without c; old 2; new 0; marks a c; candidates a b c", ""},
		{"those of a set that is being deleted are left to it", "inplace 1 -1 named=a; old 1 deleting: a; new 1: b", "old 1; new 1; marks a", ""},
		{"a machine that may go for one that was not seen is lost once", "inplace 1 -1 named=a; old 3/1 grows: a.early; new 0", "old 3>1; new 0; fixes old; marks a; candidates a", ""},
		{"the only one too many goes", "inplace 3 -2; old 1: a; new 3: b.moved", "old 1>0 without a; new 3; acknowledges b; candidates a", ""},
		{"a machine that an autoscaler named counts as gone", "inplace 3 -2; old 1: a; new 3 scaled: b.moved.marked", "old 1; new 3; acknowledges b; candidates a", ""},
		{"a machine that is named now counts as gone", "inplace 3 -2 named=b; old 1: a; new 3 scaled: b.moved", "old 1; new 3; acknowledges b; candidates a", ""},
		{"a machine that the autoscaler names now counts as gone", "inplace 3 -2 scaled; old 1: a; new 3: b.moved.marked", "old 1; new 3; acknowledges b; candidates a", ""},
		{"a named machine that is of no use anyway does not", "inplace 3 -2; old 1: a; new 3 scaled: b.moved.marked.unknown c", "old 1>0 without a; new 3; acknowledges b; candidates a", ""},
	})
}

// TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged has a set with more machines than
// replicas, since some have moved to it.
func TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged(t *testing.T) {
	check(t, []scenarioCase{
		{"the set grows by them first", "manual 1 -1; old 0; new 1: a.moved b.moved.early c.early", "old 0; new 1>3", ""},
		{"it is not cut before they are acknowledged", "manual 1 -1; old 0; new 3: a.moved b c", "old 0; new 3; acknowledges a", ""},
		{"then those of the lowest priority go", "manual 1 -1; old 0; new 3: a b.early c.unknown", "old 0; new 3>1 without b c; names new[b c]", ""},
		{"each set grows by its own", "manual 1 -1; older 0: a.moved; old 0: b.moved; new 1", "older 0>1; old 0>1; new 1", ""},
		{"not before an old set has seen that they left it", "inplace 2 -2; old 3/3: m2.candidate m3.candidate; new 0: m1.moved", "old 3; new 0; selects m2", ""},
		{"an old set that has seen it gives others", "inplace 2 -2; old 3/2: m2.candidate m3.candidate; new 0: m1.moved", "old 3>1 without m2; new 0>1; names old[m2]", ""},
		{"machines that go for the size are not counted", "manual 1 -1; old 0: a.moved b; new 0", "old 0>1; new 0", ""},
		{"a set that is being deleted does not grow", "manual 3 -1; old 0 deleting: c.moved; new 2: a b", "old 0; new 2", ""},
		{"one that an autoscaler named gets its place first", "manual 1 -1; old 0; new 1 scaled: a.moved.marked b.moved c", "old 0; new 1>3", ""},
	})
}

func TestInPlace_WithoutACluster_NothingIsUpdated(t *testing.T) {
	s := newScenario("inplace 2 -1 revision=2; old 2/2/2; new 0")
	s.in.NoCluster = true
	dec := s.decide()
	require.Equal(t, machinist.Reason("NoCluster"), dec.Reason)
	require.Empty(t, dec.Actions)
}

// TestInPlace_Move_KeepsForeignLabelsAndOwners asserts that other owners and labels stay. The
// labels that the old set selects are removed.
func TestInPlace_Move_KeepsForeignLabelsAndOwners(t *testing.T) {
	s := newScenario("inplace 3 -1; old 3: a.done b c; new 0")
	m := s.of("a")
	m.Labels["mine"], m.Labels["first"] = "x", "1"
	s.in.Sets[0].Spec.Selector.MatchLabels["first"] = "1"
	m.OwnerReferences = []metav1.OwnerReference{{UID: "first"}, m.OwnerReferences[0], {UID: "last"}}
	moved := writes[*v1alpha1.Machine](s.decide())
	require.Len(t, moved, 1)
	want := map[string]string{"mine": "x", resultKey: "successful", v1alpha1.NodeLabelKey: "node-a"}
	maps.Copy(want, s.in.Sets[1].Spec.Selector.MatchLabels)
	require.Equal(t, want, moved[0].Labels)
	owners := moved[0].OwnerReferences
	require.Len(t, owners, 3)
	require.EqualValues(t, "first", owners[0].UID)
	require.Equal(t, "new", metav1.GetControllerOf(moved[0]).Name)
	require.EqualValues(t, "last", owners[2].UID)
}

func TestInPlace_MovedMachine_NodeUnmarkedBeforeAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		label  string
		claims string // what another has recorded on the Node
		closed bool   // to pods, at the end
		awaits string // what removes the taint of critical components
	}{
		"a candidate":                            {candKey, "", false, ""},
		"one that is selected":                   {selKey, "", false, ""},
		"one with a result":                      {resultKey, "", false, ""},
		"a cordon of another stays":              {resultKey, `{"marks":["unschedulable"]}`, true, ""},
		"a taint of another is no cordon":        {resultKey, `{"marks":["taint:x=y:NoSchedule"]}`, false, ""},
		"Node of Gardener: awaits components":    {resultKey, "", false, "gardener"},
		"node template with the taint: the same": {resultKey, "", false, "template"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("inplace 1 -1; old 0; new 1: m.moved")
			n := s.in.Nodes["node-m"]
			n.Labels[c.label] = v1alpha1.LabelValueNodeUpdateSuccessful
			n.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason] = "an earlier attempt"
			if c.claims != "" {
				n.Annotations["cordon.machinist.dev/another"] = c.claims
			}
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule}}
			components := corev1.Taint{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}
			switch c.awaits {
			case "gardener":
				n.Labels["worker.gardener.cloud/pool"] = "a"
			case "template":
				s.of("m").Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{components}
				for _, template := range []*v1alpha1.MachineTemplateSpec{&s.in.Deployment.Spec.Template, &s.in.Sets[1].Spec.Template} {
					template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{components}
				}
			}
			text, dec := s.result()
			require.NotContains(t, text, "acknowledges")
			back := after(n, dec.Actions)
			require.NotSame(t, n, back, dec.String())
			delete(back.Labels, "worker.gardener.cloud/pool")
			require.Empty(t, back.Labels)
			require.NotContains(t, back.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
			require.Equal(t, c.awaits != "", slices.Contains(back.Spec.Taints, components))
			require.Len(t, back.Spec.Taints, map[bool]int{true: 1}[c.awaits != ""])
			require.Equal(t, c.closed, back.Spec.Unschedulable)
			s.in.Nodes["node-m"] = back
			text, _ = s.result()
			require.Contains(t, text, "acknowledges m")
		})
	}
}

// TestInPlace_NoOtherUpdatePossible_SurgesAgain has a maxUnavailable of 0 and a new
// set that existed before, without a surge.
func TestInPlace_NoOtherUpdatePossible_SurgesAgain(t *testing.T) {
	const a, b = "inplace 2 +1; old 2: a.candidate b.candidate; new 0", "inplace 2 +1; old 2: a.selected b.candidate; new 0"
	for name, c := range map[string]struct {
		scene string
		moved time.Duration // since something has moved
		size  string
	}{
		"nothing has moved for a while":       {a, 300 * time.Second, "new 0>1"},
		"something has moved a moment ago":    {a, 299 * time.Second, "new 0"},
		"when something moved is not known":   {a, -1, "new 0"},
		"a machine is being updated":          {b, 300 * time.Second, "new 0"},
		"a set has not done what it was told": {"inplace 2 +1; old 2/3: a.candidate b.candidate; new 0", 300 * time.Second, "new 0"},
		"machines may be unavailable":         {"inplace 2 +1 -1; old 2: a.candidate b.candidate.pending; new 0", 300 * time.Second, "new 0"},
		"no more than are wanted":             {"inplace 2 +3; old 2: a.candidate b.candidate; new 0", 300 * time.Second, "new 0>2"},
		"the new set has all it may have":     {"inplace 2 +1; old 1: a.candidate; new 2: b c.unknown", 300 * time.Second, "new 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(c.scene)
			if c.moved >= 0 {
				s.in.Deployment.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{
					Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, LastUpdateTime: metav1.NewTime(rollNow.Add(-c.moved)),
				}}
			}
			text, dec := s.result()
			require.Regexp(t, c.size+"(;|$)", text, dec.String())
			waits := slices.ContainsFunc(dec.Holds, func(h machinist.Hold) bool { return h.Until.Equal(rollNow.Add(time.Second)) })
			require.Equal(t, c.moved == 299*time.Second, waits, "it is looked at again when a while has passed")
		})
	}
}

func TestMark_UncordonedNodeOfOldSet_KeepsTaint(t *testing.T) {
	s := newScenario("inplace 3 -1 taint; old 3: a.moved b.moved c.moved; new 0")
	taint := corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	for _, n := range s.in.Nodes {
		n.Labels[candKey] = "true" // so it is given back to pods
		n.Spec.Taints = []corev1.Taint{taint}
	}
	_, dec := s.result()
	for _, n := range s.in.Nodes {
		require.NotSame(t, n, after(n, dec.Actions))
		require.Contains(t, after(n, dec.Actions).Spec.Taints, taint)
	}
}
