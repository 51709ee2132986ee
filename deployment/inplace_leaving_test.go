// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A set that does not see the deletion yet has three machines for a size of two.
func TestASetThatShrinksBecauseAMachineIsLeavingIsToldWhichOne(t *testing.T) {
	d := rollDeployment(3, v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, intstr.FromInt32(3), intstr.FromInt32(0))
	old, next := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 3, 3, 0)
	old.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	in := rollSee(d, old, next)
	leaving := in.Machines[1]
	leaving.DeletionTimestamp = new(metav1.NewTime(rollNow))
	dec := deployment.Plan(in, rollPolicy, rollNow)
	target, err := dec.Target(old.UID)
	require.NoError(t, err)
	require.Equal(t, int32(2), target.To, dec)
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok && a.Set.UID == old.UID {
			require.Equal(t, []string{leaving.Name}, machineset.Victims(a.Set))
			return
		}
	}
	t.Fatal(dec)
}
