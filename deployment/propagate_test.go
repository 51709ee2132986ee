// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestPropagateReachesTheNewSetInOneWriteAndNoOldOne(t *testing.T) {
	w, _, _ := midRoll(t)
	w.d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Hour}}
	w.d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"zone": "1"}
	w.d.Spec.Template.Spec.Class.Kind = "OtherClass"
	w.d.Spec.MinReadySeconds, w.d.Spec.AutoPreserveFailedMachineMax = 5, 2
	w.d.Annotations = map[string]string{"cause": "x"}
	old := w.sets[0].Spec.Template.DeepCopy()
	dec := w.run(t, deployment.Policy{})
	writes := 0
	for _, a := range dec.Actions {
		if set, ok := a.(deployment.WriteSet); ok && set.Set.Name == "w-b" {
			writes++
		}
	}
	require.Equal(t, 1, writes)
	got := w.sets[1]
	require.Equal(t, time.Hour, got.Spec.Template.Spec.MachineConfiguration.MachineDrainTimeout.Duration)
	require.Equal(t, "1", got.Spec.Template.Spec.NodeTemplateSpec.Labels["zone"])
	require.Equal(t, "OtherClass", got.Spec.Template.Spec.Class.Kind)
	require.Equal(t, int32(5), got.Spec.MinReadySeconds)
	require.Equal(t, int32(2), got.Spec.AutoPreserveFailedMachineMax)
	require.Equal(t, "x", got.Annotations["cause"])
	require.Empty(t, cmp.Diff(old, &w.sets[0].Spec.Template), "a roll-back restores the time-outs, too")
}

func TestPropagateGoesOnWhilePaused(t *testing.T) {
	w := newMarksWorld(1)
	w.d.Spec.Paused = true
	w.d.Spec.MinReadySeconds = 9
	w.run(t, deployment.Policy{})
	require.Equal(t, int32(9), w.sets[0].Spec.MinReadySeconds)
}

func TestThereIsNoRevisionAboveTheHighestNumber(t *testing.T) {
	d := rolling(3, 1, 0)
	old := rollSet(d, "c0", 3, 3, 3)
	old.Annotations[v1alpha1.RevisionAnnotation] = "9223372036854775807"
	require.Equal(t, "9223372036854775807", deployment.BuildSet(d, []*v1alpha1.MachineSet{old}, 1).Annotations[v1alpha1.RevisionAnnotation])
}
