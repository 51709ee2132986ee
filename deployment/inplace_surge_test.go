// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// No machine may be unavailable, and the new set was there before, without a surge.
// Plans are made 1000 seconds after the epoch.
func TestInPlaceASurgeComesAgainIfNothingCouldBeUpdatedOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		moved  int64 // when something moved last
		change func(*updScene)
		size   int32
	}{
		"nothing has moved for a while":       {700, func(*updScene) {}, 1},
		"something has moved a moment ago":    {701, func(*updScene) {}, 0},
		"nobody knows when something moved":   {700, func(s *updScene) { s.in.Deployment.Status.Conditions = nil }, 0},
		"a machine is being updated":          {700, func(s *updScene) { s.in.Nodes["a"].Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true" }, 0},
		"a set has not done what it was told": {700, func(s *updScene) { s.set("old").Status.Replicas = 3 }, 0},
		"machines may be unavailable": {700, func(s *updScene) {
			s.in.Deployment.Spec.Strategy.InPlaceUpdate.MaxUnavailable = updDeployment(2, "0", "1", false).Spec.Strategy.InPlaceUpdate.MaxUnavailable
			s.is("b", v1alpha1.MachinePending)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUpdScene(updDeployment(2, "1", "0", false), "c2", 2, 0)
			s.machine("old", "a", "candidate")
			s.machine("old", "b", "candidate")
			s.in.Deployment.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{
				Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, LastUpdateTime: metav1.NewTime(time.Unix(c.moved, 0)),
			}}
			c.change(s)
			p := s.plan()
			require.Equal(t, c.size, p.sizes["new"], p.dec.String())
			waits := slices.ContainsFunc(p.dec.Holds, func(h machinist.Hold) bool { return h.Until.Equal(time.Unix(1001, 0)) })
			require.Equal(t, c.moved == 701, waits, "it is looked at again when a while has passed")
		})
	}
}
