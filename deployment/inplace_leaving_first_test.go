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

// One write takes the place of the machine that is leaving and keeps the set from
// making another.
func TestASetThatIsKeptFromGrowingAndShrinksAtOnceIsToldWhoIsLeaving(t *testing.T) {
	d := rollDeployment(3, v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, intstr.FromInt32(3), intstr.FromInt32(0))
	old, next := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 3, 3, 0)
	in := rollSee(d, old, next)
	leaving := in.Machines[1]
	leaving.DeletionTimestamp = new(metav1.NewTime(rollNow))
	dec := deployment.Plan(in, rollPolicy, rollNow)
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok && a.Set.UID == old.UID {
			require.True(t, machineset.ScaleUpDisabled(a.Set))
			require.Less(t, a.Set.Spec.Replicas, int32(3), dec)
			require.Contains(t, machineset.Victims(a.Set), leaving.Name)
			return
		}
	}
	t.Fatal(dec)
}
