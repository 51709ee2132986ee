// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestOnlyCounters_EachField_Result(t *testing.T) {
	condition := v1alpha1.MachineDeploymentCondition{Type: v1alpha1.MachineDeploymentProgressing, Reason: "a", LastUpdateTime: metav1.NewTime(rollNow)}
	before := v1alpha1.MachineDeploymentStatus{Replicas: 3, Conditions: []v1alpha1.MachineDeploymentCondition{condition}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.MachineDeploymentStatus)
		want   bool
	}{
		"nothing":   {func(*v1alpha1.MachineDeploymentStatus) {}, true},
		"replicas":  {func(s *v1alpha1.MachineDeploymentStatus) { s.Replicas++ }, true},
		"available": {func(s *v1alpha1.MachineDeploymentStatus) { s.AvailableReplicas++ }, true},
		"time of progress": {func(s *v1alpha1.MachineDeploymentStatus) {
			s.Conditions[0].LastUpdateTime = metav1.NewTime(rollNow.Add(time.Hour))
		}, true},
		"reason":              {func(s *v1alpha1.MachineDeploymentStatus) { s.Conditions[0].Reason = "b" }, false},
		"observed generation": {func(s *v1alpha1.MachineDeploymentStatus) { s.ObservedGeneration++ }, false},
	} {
		after := *before.DeepCopy()
		c.change(&after)
		kept := after.DeepCopy()
		require.Equal(t, c.want, deployment.OnlyCounters(before, after), name)
		require.Equal(t, *kept, after, "the argument changed")
	}
}
