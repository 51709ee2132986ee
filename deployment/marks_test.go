// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestMark_NodesOfARollout(t *testing.T) {
	check(t, []scenarioCase{
		{"by default pods should go elsewhere", "rolling 3 +1 taint; old 3/3/3; new 1/1/1", "old 3>2 without old-0; new 1; names old[old-0]; discourages old; taints old-0 old-1 old-2", ""},
		{"pods have to go elsewhere", "rolling 3 +1 taint=NoSchedule; old 3/3/3; new 1/1/1", "old 3>2 without old-0; new 1; names old[old-0]; discourages old; bars old-0 old-1 old-2", ""},
		{"pods may come", "rolling 3 +1; old 3/3/3; new 1/1/1", "old 3>2 without old-0; new 1; names old[old-0]", ""},
		{"a Recreate discourages no pods", "recreate 3 taint; old 3/3/3; new 1/1/1", "old 3>0 without old-0 old-1 old-2; new 1", ""},
		{"an unknown policy is the default", "rolling 3 +1 taint=?; old 3/3/3; new 1/1/1", "old 3>2 without old-0; new 1; names old[old-0]; discourages old; taints old-0 old-1 old-2", ""},
		{"a Node that joins an old set late", "rolling 3 +1 taint; old 3 discouraged: a.tainted b.tainted c; new 1/1/0", "old 3; new 1; taints c", ""},
		{"the template goes back to the old set", "rolling 3 +1 taint want=old; old 3 discouraged: a.tainted.selected b.tainted.candidate c.tainted; new 1/1/1", "old 3; new 1>0 without new-0; discourages new; welcomes old; returns a b; taints new-0; untaints a b c", ""},
		{"labels of a candidate go with the strategy", "rolling 3 +1; old 3: a.selected b c; new 1/1/0", "old 3; new 1; returns a", ""},
		{"a Node that was selected belongs to the new set again", "rolling 3 +1 want=old; old 3: a.picked b c; new 1/1/0", "old 3; new 1>0 without new-0; returns a", ""},
		{"a machine that is being updated keeps them", "rolling 3 +1; old 3: a.selected.updating b c; new 1/1/0", "old 3; new 1", ""},
		{"nothing while paused", "rolling 3 +1 taint hold paused; old 3/3/3; new 1: d.tainted", "old 3; new 1", ""},
		{"nothing while scaling", "rolling 5 +1 taint hold; old 3/3/3 sized=3; new 1 sized=3: d.tainted", "old 3; new 1>3", ""},
		{"nothing before there is a new set", "rolling 3 +1 taint hold frozen; old 3/3/3", "old 3", ""},
		{"nothing while the new set is being deleted", "rolling 3 +1 taint hold; old 3/3/3; new 1/1/1 deleting", "old 3; new 1", ""},
		{"not the Nodes of machines that go", "rolling 3 +1 taint; old 3: a.leaving b.ending c; new 1/1/0", "old 3; new 1; discourages old; taints c", ""},
		{"not a Node that does not exist", "rolling 3 +1 taint; old 3: a.gone b.unlooked c; new 1/1/0", "old 3; new 1; discourages old; taints c", ""},
		{"not what is marked already", "rolling 3 +1 taint hold; old 3 discouraged: a.tainted.held b.tainted.held c.tainted.held; new 1/1/0: d.held", "old 3; new 1", ""},
		{"not an empty old set", "rolling 2 taint; old 0; new 2/2/2", "old 0; new 2", ""},
	})
}

func TestMark_AutoscalerOfARollout(t *testing.T) {
	check(t, []scenarioCase{
		{"it keeps away from all Nodes", "rolling 3 +1 hold; old 3/3/3; new 1/1/0: d", "old 3; new 1; holds d old-0 old-1 old-2", ""},
		{"an annotation of a user stays", "rolling 3 +1 hold; old 3: a.changed b c; new 1/1/0: d.mine", "old 3; new 1; holds b c", ""},
		{"it comes back when the rollout is complete", "rolling 4 hold; new 4: a.held b.held.kept c.changed d.mine", "new 4; releases a; forgets c", ""},
		{"also without the policy", "rolling 1; new 1: a.held", "new 1; releases a", ""},
		{"not before the set has reported", "rolling 1 hold; new 1 unreported: a.held", "new 1", ""},
		{"not if the pass changes the set", "rolling 1 hold scaled; new 1: a.held", "new 1", ""},
		{"not before all machines are available", "rolling 1 hold; new 1/1/0: a.held", "new 1", ""},
		{"not while a machine more exists than wanted", "rolling 1 hold; new 1/2/2: a.held b.held", "new 1 without a", ""},
	})
}

func TestMark_Node_IsWrittenOnceWithAPrecondition(t *testing.T) {
	s := newScenario("rolling 3 +1 taint hold; old 3: a b c; new 1: d")
	n := s.in.Nodes["node-a"]
	n.ResourceVersion, n.Labels = "1", map[string]string{"keep": "1"}
	n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}, {Key: v1alpha1.PreferNoScheduleKey, Value: "?", Effect: corev1.TaintEffectNoSchedule}}
	_, dec := s.result()
	updates := slices.DeleteFunc(actions[machinist.Update](dec), func(u machinist.Update) bool { return u.Object.GetName() != n.Name })
	require.Len(t, updates, 1)
	checkUpdate(t, updates[0])
	want := n.DeepCopy()
	want.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey], want.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey] = "true", "true"
	want.Spec.Taints[1] = corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	require.Equal(t, want, updates[0].Object)
}

func TestDecide_Actions_ShareNoMutableMemory(t *testing.T) {
	s := newScenario("rolling 3 +1 taint hold scaled named=old-0; old 3/3/3; new 1/1/1")
	before := copyOf(s.in)
	dec := s.decide()
	for _, n := range writes[*corev1.Node](dec) {
		n.Annotations["x"], n.Spec.Taints = "y", append(n.Spec.Taints[:0], corev1.Taint{Key: "z"})
	}
	for _, m := range writes[*v1alpha1.Machine](dec) {
		m.Annotations["x"], m.OwnerReferences[0].Name = "y", "z"
	}
	for _, set := range writes[*v1alpha1.MachineSet](dec) {
		set.Annotations["x"], set.Spec.Selector.MatchLabels["x"] = "y", "z"
	}
	require.Empty(t, cmp.Diff(before, s.in))
}

func TestDecide_Actions_MarksOfMachinesComeBeforeSetsShrink(t *testing.T) {
	s := newScenario("rolling 2 +1 taint scaled named=old-0; old 2/2/2 sized=3; new 1/1/1 sized=3")
	require.Equal(t, []string{"update machine", "update machineset", "update machineset"}, kindsOf(s.decide()))
}

func TestDecide_Actions_NodesAreWrittenLast(t *testing.T) {
	dec := newScenario("rolling 4 +2 taint revision=2; old 3/3/3; new 1/1/1").decide()
	require.Equal(t, []string{"update machineset", "update machineset", "update node", "update node", "update node"}, kindsOf(dec))
}

func TestDecide_SetDeleting_NotWritten(t *testing.T) {
	for scene, want := range map[string]string{
		"rolling 2 paused; old 0 sized=3; new 2/2/2": "old 0; new 2; deletes old",
		"rolling 2 paused; old 0 sized=3":            "old 0>2; deletes old",
	} {
		s := newScenario(scene)
		s.in.Deployment.Spec.RevisionHistoryLimit = new(int32(0))
		text, dec := s.result()
		require.Equal(t, want, text)
		require.Empty(t, writes[*v1alpha1.MachineSet](dec))
	}
}

func TestDecide_Burst_LimitsWritesAndHolds(t *testing.T) {
	s := newScenario("rolling 9 +1 taint burst=4; old 9 discouraged: a b c d e f g h i; new 1/1/0")
	for _, left := range []int{9, 5, 1} {
		dec := s.decide()
		nodes := writes[*corev1.Node](dec)
		require.Len(t, nodes, min(4, left))
		if left > 4 {
			require.Contains(t, dec.String(), fmt.Sprintf("md: BurstLimit: 4 of %d machines and nodes are written in this pass", left))
		}
		for _, n := range nodes {
			s.in.Nodes[n.Name] = n
		}
	}
}
