// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestInPlace_SizesFollowMachines(t *testing.T) { checkScenes(t) }
func TestInPlace_ScaleUpDisabled(t *testing.T)     { checkScenes(t) }
func TestInPlace_Moves(t *testing.T)               { checkScenes(t) }
func TestInPlace_Candidates(t *testing.T)          { checkScenes(t) }
func TestInPlace_Selection(t *testing.T)           { checkScenes(t) }
func TestInPlace_Acknowledgement(t *testing.T)     { checkScenes(t) }

// TestInPlace_Stages asserts that labels, phases and conditions give the stage of the update of m1.
func TestInPlace_Stages(t *testing.T) { checkScenes(t) }

// TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted has one available machine, which
// was updated and whose Node is still marked. The others are being updated, and the replicas
// decrease by one.
func TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted(t *testing.T) { checkScenes(t) }

// TestInPlace_NamedMachines shrinks an old set, with and without machines that an autoscaler named.
func TestInPlace_NamedMachines(t *testing.T) { checkScenes(t) }

// TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged has a set with more machines than
// replicas, since some have moved to it.
func TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged(t *testing.T) { checkScenes(t) }

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
func TestInPlace_NoOtherUpdatePossible_SurgesAgain(t *testing.T) { checkScenes(t) }
