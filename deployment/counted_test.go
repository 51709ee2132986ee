// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// countedWorld has five machines, which take an hour to leave.
func countedWorld(t *testing.T) (*deploymenttest.World, func(name string)) {
	w, err := deploymenttest.New(rolling(5, 1, 0), deploymenttest.Model{Leave: func(*v1alpha1.Machine) time.Duration { return time.Hour }})
	require.NoError(t, err)
	w.Run(time.Hour)
	return w, func(name string) {
		next, err := deployment.ScaleDown(w.Deployment(), []string{name}, w.Now())
		require.NoError(t, err)
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { *d = *next }))
	}
}

func TestAMachineThatIsNamedAgainWhileItLeavesIsCountedOnce(t *testing.T) {
	w, scaleDown := countedWorld(t)
	name := w.Machines()[0].Name
	scaleDown(name)
	w.At(w.Now().Add(30*time.Minute), func(*deploymenttest.World) {
		require.NotNil(t, w.Machine(name).DeletionTimestamp)
		require.NotContains(t, w.Deployment().Annotations, v1alpha1.TriggerDeletionByMCM, "its name is done with")
		scaleDown(name)
	})
	w.Run(5 * time.Hour)
	require.EqualValues(t, 4, w.Deployment().Spec.Replicas)
	require.Len(t, w.Machines(), 4)
	require.NotContains(t, w.Deployment().Annotations, deployment.CountedAnnotation, "it is forgotten when it is gone")
}

func TestANameThatWasWithdrawnCountsWhenItIsNamedAgain(t *testing.T) {
	w, scaleDown := countedWorld(t)
	name := w.Machines()[0].Name
	scaleDown(name)
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas++
		delete(d.Annotations, v1alpha1.TriggerDeletionByMCM)
	}))
	w.Run(5 * time.Hour)
	require.Len(t, w.Machines(), 5)
	require.NotContains(t, w.Deployment().Annotations, deployment.CountedAnnotation)
	scaleDown(name)
	w.Run(5 * time.Hour)
	require.Len(t, w.Machines(), 4)
	require.Nil(t, w.Machine(name))
}
