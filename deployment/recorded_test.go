// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The recorded behaviour of the reference system in corners of a pass.

func TestPlan_PassThatCreatesASet_CountsItAsUnavailable(t *testing.T) {
	three, none := intstr.FromInt32(3), intstr.FromInt32(0)
	d := rollDeployment(5, v1alpha1.RollingUpdateMachineDeploymentStrategyType, three, none)
	dec := rollPlan(d, rollSet(d, "c0", 5, 5, 5))
	require.Equal(t, deployment.ReasonNewSet, dec.Reason)
	require.Equal(t, int32(3), dec.Status.UnavailableReplicas)

	d = rollDeployment(5, v1alpha1.InPlaceUpdateMachineDeploymentStrategyType, three, none)
	require.Equal(t, int32(3), rollPlan(d, rollSet(d, "c0", 5, 5, 5)).Status.UnavailableReplicas)

	d = rollDeployment(5, v1alpha1.RecreateMachineDeploymentStrategyType, none, none)
	dec = rollPlan(d, rollSet(d, "c0", 0, 0, 0)) // the old machines are gone
	require.Equal(t, deployment.ReasonNewSet, dec.Reason)
	require.Equal(t, int32(5), dec.Status.UnavailableReplicas)
	require.Zero(t, dec.Status.UpdatedReplicas)
}

// A set that grows counts with the size that it had.
func TestPlan_PassThatGrowsASet_CountsItsFormerSize(t *testing.T) {
	d := rolling(5, 3, 0)
	dec := rollPlan(d, rollSet(d, "c0", 5, 5, 5), rollSet(d, "c1", 1, 1, 1))
	require.Contains(t, rollLines(dec)[0], "scale md-c1 from 1 to 3")
	require.Zero(t, dec.Status.UnavailableReplicas)
}

func TestNewSetAnnotations_EmptyValueThatTheSetLacks_IsNotAdded(t *testing.T) {
	d, s := rolling(3, 1, 0), &v1alpha1.MachineSet{}
	s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1", "had": "a value"}
	d.Annotations = map[string]string{"new": "", "had": ""}
	annotations, changed := deployment.NewSetAnnotations(d, s, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{v1alpha1.RevisionAnnotation: "1", "had": ""}, annotations)

	s.Annotations = annotations
	_, changed = deployment.NewSetAnnotations(d, s, "1", true)
	require.False(t, changed)
}

func TestPlan_RevisionBehindAnUpToDateSet_DeploymentAndStatusAreWritten(t *testing.T) {
	d, set := complete(t)
	require.False(t, rollPlan(d, set).WriteStatus)
	d.Annotations[v1alpha1.RevisionAnnotation] = "0"
	dec := rollPlan(d, set)
	require.Len(t, dec.Actions, 1)
	written := dec.Actions[0].(deployment.WriteDeployment).Deployment
	require.Equal(t, set.Annotations[v1alpha1.RevisionAnnotation], written.Annotations[v1alpha1.RevisionAnnotation])
	require.True(t, dec.WriteStatus)
	require.False(t, rollPlan(written, set).WriteStatus, "once")
}
