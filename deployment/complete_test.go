// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestARolloutIsCompleteOnlyIfAllIsAsItIsWanted(t *testing.T) {
	type status = v1alpha1.MachineDeploymentStatus
	for name, c := range map[string]struct {
		change   func(*status)
		complete bool
	}{
		"all is as wanted":               {func(*status) {}, true},
		"machines are not updated":       {func(s *status) { s.UpdatedReplicas-- }, false},
		"more are updated than wanted":   {func(s *status) { s.UpdatedReplicas++ }, false},
		"machines are missing":           {func(s *status) { s.Replicas-- }, false},
		"more are there than wanted":     {func(s *status) { s.Replicas++ }, false},
		"machines are not available":     {func(s *status) { s.AvailableReplicas-- }, false},
		"more are available than wanted": {func(s *status) { s.AvailableReplicas++ }, false},
		"what is ready does not count":   {func(s *status) { s.ReadyReplicas = 0 }, true},
		"it is of an earlier spec":       {func(s *status) { s.ObservedGeneration-- }, false},
		"it is of a later one":           {func(s *status) { s.ObservedGeneration++ }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 1)
			d.Generation = 2
			s := status{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3, ObservedGeneration: 2}
			c.change(&s)
			require.Equal(t, c.complete, deployment.Complete(d, s))
		})
	}
}

func TestARollBackThatIsNotPossibleIsWrittenOnceAndSaysWhyNot(t *testing.T) {
	w := rollbackWorld()
	w.d.Spec.RollbackTo.Revision = 99
	var last []string
	for _, a := range w.plan(deployment.Policy{}).Actions {
		if a, ok := a.(deployment.WriteDeployment); ok {
			require.Nil(t, a.Deployment.Spec.RollbackTo)
			last = append(last, a.Changes[len(a.Changes)-1])
		}
	}
	require.Equal(t, []string{"the roll-back is not possible: Unable to find the revision to rollback to."}, last)
}

func TestRollbackPrefersTheOldestOfTheSetsWithARevision(t *testing.T) {
	w := rollbackWorld()
	for _, s := range w.sets {
		s.Annotations[v1alpha1.RevisionAnnotation] = "4"
	}
	w.d.Spec.RollbackTo.Revision = 4
	w.run(t, deployment.Policy{})
	require.Equal(t, "a", w.d.Spec.Template.Spec.Class.Name)
}
