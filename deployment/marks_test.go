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

func TestMark_NodesOfARollout(t *testing.T)      { checkScenes(t) }
func TestMark_AutoscalerOfARollout(t *testing.T) { checkScenes(t) }

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
