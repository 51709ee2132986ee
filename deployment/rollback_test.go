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

// rolledThrice is a world with the revisions 1, 2 and 3.
func rolledThrice(t *testing.T) *deploymenttest.World {
	t.Helper()
	w := replaceWorld(t, 1, deploymenttest.Model{})
	for _, class := range []string{"medium", "large"} {
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = class }))
		w.Run(10 * time.Hour)
	}
	return w
}

func TestRollBack_Revision_IsRestored(t *testing.T) {
	for to, reached := range map[int64]string{0: "medium", 1: "", 2: "medium"} {
		w := rolledThrice(t)
		first := deployment.Revisions(w.Deployment(), w.Sets())[0].Set.Spec.Template.Spec.Class.Name
		next, err := deployment.RollBack(w.Deployment(), w.Sets(), to)
		require.NoError(t, err)
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec = next.Spec }))
		w.Run(10 * time.Hour)
		if reached == "" {
			reached = first
		}
		require.Equal(t, reached, w.Deployment().Spec.Template.Spec.Class.Name)
		require.Equal(t, deployment.ReasonComplete, w.Decision().Reason)
	}
}

func TestRollBack_Impossible_Error(t *testing.T) {
	w := rolledThrice(t)
	paused := w.Deployment().DeepCopy()
	paused.Spec.Paused = true
	for _, c := range []struct {
		d    *v1alpha1.MachineDeployment
		sets []*v1alpha1.MachineSet
		to   int64
		says string
	}{
		{nil, nil, 0, "no deployment"},
		{paused, w.Sets(), 0, "is paused"},
		{w.Deployment(), w.Sets(), -1, "revision -1 is negative"},
		{w.Deployment(), w.Sets(), 7, "has no revision 7, but 1, 2, 3"},
		{w.Deployment(), w.Sets(), 3, "has the template of revision 3 already"},
		{w.Deployment(), nil, 0, "has no earlier revision"},
	} {
		_, err := deployment.RollBack(c.d, c.sets, c.to)
		require.ErrorContains(t, err, c.says)
	}
}

func TestRevisions_Sets_InOrderAndCurrent(t *testing.T) {
	w := rolledThrice(t)
	odd := w.Sets()[0].DeepCopy()
	odd.Annotations[v1alpha1.RevisionAnnotation] = "x"
	all := deployment.Revisions(w.Deployment(), append(w.Sets(), nil, odd))
	require.Len(t, all, 3)
	for i, r := range all {
		require.EqualValues(t, i+1, r.Number)
		require.Equal(t, i == 2, r.Current)
	}
}
