// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// leavingOfOld plans an update in place in which one of three old machines is leaving,
// and returns its name, and the old set as it was and as it is written.
func leavingOfOld(t *testing.T, labels map[string]string) (dec deployment.Decision, name string, before, after *v1alpha1.MachineSet) {
	t.Helper()
	d := rollDeployment(3, v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, intstr.FromInt32(3), intstr.FromInt32(0))
	before = rollSet(d, "c0", 3, 3, 3)
	maps.Copy(before.Labels, labels)
	in := rollSee(d, before, rollSet(d, "c1", 3, 3, 0))
	leaving := in.Machines[1]
	leaving.DeletionTimestamp = new(metav1.NewTime(rollNow))
	dec = deployment.Plan(in, rollPolicy, rollNow)
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok && a.Set.UID == before.UID {
			return dec, leaving.Name, before, a.Set
		}
	}
	t.Fatal(dec)
	return dec, "", nil, nil
}

// A set that does not see the deletion yet has three machines for a size of two.
func TestASetThatShrinksBecauseAMachineIsLeavingIsToldWhichOne(t *testing.T) {
	dec, leaving, before, after := leavingOfOld(t, map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: "true"})
	target, err := dec.Target(before.UID)
	require.NoError(t, err)
	require.Equal(t, int32(2), target.To, dec)
	require.Equal(t, []string{leaving}, machineset.Victims(after))
}

// One write takes the place of the machine that is leaving and keeps the set from
// making another.
func TestASetThatIsKeptFromGrowingAndShrinksAtOnceIsToldWhoIsLeaving(t *testing.T) {
	dec, leaving, _, after := leavingOfOld(t, nil)
	require.True(t, machineset.ScaleUpDisabled(after))
	require.Less(t, after.Spec.Replicas, int32(3), dec)
	require.Contains(t, machineset.Victims(after), leaving)
}
