// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// written returns a Node as a plan writes it, nil if it does not.
func (p updPlan) written(name string) *corev1.Node {
	for _, a := range p.dec.Actions {
		if a, ok := a.(deployment.WriteNode); ok && a.Node.Name == name {
			return a.Node
		}
	}
	return nil
}

func TestInPlaceAllMarksOfAnUpdateAreTakenOffTheNodeBeforeItsMachineIsAcknowledged(t *testing.T) {
	claim := "fence.machinist.dev/somebody"
	for name, c := range map[string]struct {
		label  string
		claims string // what somebody else has recorded on the Node
		closed bool   // to pods, at the end
	}{
		"a candidate":                           {v1alpha1.LabelKeyNodeCandidateForUpdate, "", false},
		"one that is selected":                  {v1alpha1.LabelKeyNodeSelectedForUpdate, "", false},
		"one with a result":                     {v1alpha1.LabelKeyNodeUpdateResult, "", false},
		"a cordon of another stays":             {v1alpha1.LabelKeyNodeUpdateResult, `{"marks":["unschedulable"]}`, true},
		"one who does other things cordons not": {v1alpha1.LabelKeyNodeUpdateResult, `{"marks":["taint:x=y:NoSchedule"]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 0, 1)
			s.machine("new", "m", "moved")
			n := s.in.Nodes["m"]
			n.Labels[c.label] = v1alpha1.LabelValueNodeUpdateSuccessful
			n.Annotations = map[string]string{v1alpha1.AnnotationKeyMachineUpdateFailedReason: "an earlier attempt"}
			if c.claims != "" {
				n.Annotations[claim] = c.claims
			}
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule}}
			p := s.plan()
			_, acknowledged := p.names(s.set("new"))
			require.False(t, acknowledged, p.dec.String())
			back := p.written("m")
			require.NotNil(t, back, p.dec.String())
			require.Empty(t, back.Labels)
			require.NotContains(t, back.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
			require.Equal(t, []corev1.Taint{{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}, back.Spec.Taints)
			require.Equal(t, c.closed, back.Spec.Unschedulable)

			s.in.Nodes["m"] = back
			p = s.plan()
			_, acknowledged = p.names(s.set("new"))
			require.True(t, acknowledged, p.dec.String())
		})
	}
}
