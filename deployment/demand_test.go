// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestAMachineThatGoesBecauseOfThisPassIsNotCountedOn(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "c1", 2, 2, 2)
	in := rollSee(d, old, newSet)
	in.Machines[2].Annotations = map[string]string{v1alpha1.MachinePriority: "1", v1alpha1.MarkedForDeletionTime: "2026-03-01T11:00:00Z"}
	require.Equal(t, []string{"scale md-c0 from 2 to 1: 3 machines available, minimum 3"}, rollLines(deployment.Plan(in, rollPolicy, rollNow)), "its set knows of no change of the replicas")

	d.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: "2026-03-01T11:30:00Z"}
	dec := deployment.Plan(in, rollPolicy, rollNow)
	require.Empty(t, rollLines(dec), "the set is told of the change now, and lets the machine go")
	target, err := dec.Target(newSet.UID)
	require.NoError(t, err)
	require.Equal(t, []string{"md-c1-00"}, rollVictims(target))
}
