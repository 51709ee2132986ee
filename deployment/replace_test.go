// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func worldView(r *rollout) deployment.Observation {
	return deployment.Observation{Deployment: r.Deployment(), Sets: r.Sets(), Machines: r.Machines(), Complete: true}
}

// replacing is a world with a machine that is to be replaced.
func replacing(t *testing.T, surge int32, m deploymenttest.Model) (r *rollout, name string) {
	t.Helper()
	r = newRollout(t, rolling(5, surge, 1), m)
	return r, r.Machines()[2].Name
}

// replaceOnce carries out one step of a replacement.
func replaceOnce(t *testing.T, r *rollout, name string) deployment.Decision {
	t.Helper()
	d, err := deployment.Replace(worldView(r), name, r.Now())
	require.NoError(t, err)
	require.False(t, d.Reason != deployment.ReasonComplete && len(d.Actions)+len(d.Holds) == 0, "it says what it waits for")
	for _, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Update:
			r.store(a.Object.(*v1alpha1.MachineDeployment))
		case machinist.Delete:
			require.NoError(t, r.DeleteMachine(a.Object.GetName()))
		default:
			require.Failf(t, "unknown action", "%s", a)
		}
	}
	return d
}

// store writes spec and annotations of a deployment.
func (r *rollout) store(next *v1alpha1.MachineDeployment) {
	next = next.DeepCopy()
	r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec, d.Annotations = next.Spec, next.Annotations })
}

func TestReplace_Surge_NeverFewerAvailable(t *testing.T) {
	for _, killed := range []int{-1, 0, 1, 2, 3} { // the program ends after so many steps, and is started again later
		r, name := replacing(t, 2, deploymenttest.Model{})
		for step := 0; replaceOnce(t, r, name).Reason != deployment.ReasonComplete; step++ {
			if step == killed {
				r.Run(10 * time.Hour)
			}
			for range 3 {
				r.Step()
			}
			require.Less(t, step, 50)
		}
		require.Equal(t, 5, r.least)
		require.LessOrEqual(t, r.most, 7)
		r.rest()
		require.Nil(t, r.Machine(name))
		require.Len(t, r.Machines(), 5)
		require.EqualValues(t, 5, r.Deployment().Spec.Replicas)
		require.NotContains(t, r.Deployment().Annotations, "machinist.dev/replacing")
	}
}

func TestReplace_NoSurge_DeletesAndTheSetCreates(t *testing.T) {
	w, name := replacing(t, 0, deploymenttest.Model{})
	d := replaceOnce(t, w, name)
	require.Equal(t, "delete machine "+name+": its set creates another one: the strategy of its deployment has no surge", d.Actions[0].String())
	w.Step()
	require.Equal(t, "it is being deleted", replaceOnce(t, w, name).Message)
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_NoCapacity_StopTakesTheReplicaBack(t *testing.T) {
	var r *rollout
	full := 5
	r = newRollout(t, rolling(5, 1, 1), deploymenttest.Model{Create: limit(&r, &full)})
	name := r.Machines()[2].Name
	replaceOnce(t, r, name)
	r.Run(time.Hour)
	require.Equal(t, "4 of 5 other machines available", replaceOnce(t, r, name).Message)
	next, stopped := deployment.StopReplacing(r.Deployment())
	require.True(t, stopped)
	r.store(next)
	r.rest()
	require.NotNil(t, r.Machine(name))
	require.Len(t, r.Machines(), 5)
	require.Equal(t, 5, r.least)
	for _, d := range []*v1alpha1.MachineDeployment{r.Deployment(), nil} {
		_, stopped = deployment.StopReplacing(d)
		require.False(t, stopped)
	}
}

func TestReplace_DeletedMeanwhile_TakesTheReplicaBack(t *testing.T) {
	w, name := replacing(t, 1, deploymenttest.Model{})
	replaceOnce(t, w, name)
	require.NoError(t, w.DeleteMachine(name))
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "1 replica less, because machine "+name+" is deleted")
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_ReplicaTakenBackByAnother_BeginsAgain(t *testing.T) {
	w, name := replacing(t, 1, deploymenttest.Model{})
	replaceOnce(t, w, name)
	w.scale(5)
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "another client has taken back the replica")
	require.EqualValues(t, 5, w.Deployment().Spec.Replicas, "and no other one")
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "from 5 to 6 replicas")
}

func TestReplace_Impossible_Error(t *testing.T) {
	w, name := replacing(t, 1, deploymenttest.Model{})
	other := w.Machines()[1].Name
	with := func(change func(*v1alpha1.MachineDeployment)) deployment.Observation {
		in := worldView(w)
		in.Deployment = in.Deployment.DeepCopy()
		change(in.Deployment)
		return in
	}
	foreign := worldView(w)
	foreign.Sets = nil
	for says, in := range map[string]deployment.Observation{
		"no deployment": {}, "does not own it": foreign,
		"wants no machines": with(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 0 }),
		"strategy":          with(func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.Type = "Hope" }),
		"machine " + other + " of machinedeployment": with(func(d *v1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{"machinist.dev/replacing": other + "~5"}
		}),
	} {
		_, err := deployment.Replace(in, name, w.Now())
		require.ErrorContains(t, err, says)
	}
	partial := worldView(w)
	partial.Machines, partial.Complete = nil, false
	d, err := deployment.Replace(partial, name, w.Now())
	require.NoError(t, err)
	require.Empty(t, d.Actions)
	require.Len(t, d.Holds, 1)
}

// rolledThrice is a world with the revisions 1, 2 and 3.
func rolledThrice(t *testing.T) *rollout {
	t.Helper()
	r := newRollout(t, rolling(5, 1, 1), deploymenttest.Model{})
	for _, class := range []string{"medium", "large"} {
		r.class(class)
		r.complete()
	}
	return r
}

func TestRollBack_Revision_IsRestored(t *testing.T) {
	for to, reached := range map[int64]string{0: "medium", 1: "c1", 2: "medium"} {
		r := rolledThrice(t)
		next, err := deployment.RollBack(r.Deployment(), r.Sets(), to)
		require.NoError(t, err)
		r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec = next.Spec })
		r.complete()
		require.Equal(t, reached, r.Deployment().Spec.Template.Spec.Class.Name)
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
		require.Equal(t, []string{"c1", "medium", "large"}[i], r.Set.Spec.Template.Spec.Class.Name)
		require.Equal(t, i == 2, r.Current)
	}
}
