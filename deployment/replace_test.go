// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// errNoVMs is the error of a provider without capacity.
var errNoVMs = status.Error(codes.ResourceExhausted, "no VMs left")

// replaceWorld is a world of five machines.
func replaceWorld(t *testing.T, surge int32, m deploymenttest.Model) *deploymenttest.World {
	t.Helper()
	w, err := deploymenttest.New(rolling(5, surge, 1), m)
	require.NoError(t, err)
	_, rest := w.Run(time.Hour)
	require.True(t, rest)
	return w
}

func worldView(w *deploymenttest.World) deployment.Observation {
	return deployment.Observation{Deployment: w.Deployment(), Sets: w.Sets(), Machines: w.Machines(), Complete: true}
}

// replaceOnce carries out one step of a replacement.
func replaceOnce(t *testing.T, w *deploymenttest.World, name string) deployment.Decision {
	t.Helper()
	d, err := deployment.Replace(worldView(w), name, w.Now())
	require.NoError(t, err)
	require.False(t, d.Reason != deployment.ReasonComplete && len(d.Actions)+len(d.Holds) == 0, "it says what it waits for")
	for _, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Update:
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) {
				next := a.Object.(*v1alpha1.MachineDeployment).DeepCopy() //nolint:forcetypeassert // it writes the deployment alone
				d.Spec, d.Annotations = next.Spec, next.Annotations
			}))
		case machinist.Delete:
			require.NoError(t, w.DeleteMachine(a.Object.GetName()))
		default:
			require.Failf(t, "unknown action", "%s", a)
		}
	}
	return d
}

// available returns the number of available machines.
func available(w *deploymenttest.World) (n int) {
	for _, s := range w.Sizes() {
		n += s.Counts.Available
	}
	return n
}

func TestReplace_Surge_NeverFewerAvailable(t *testing.T) {
	for _, killed := range []int{-1, 0, 1, 2, 3} { // the program ends after so many steps, and is started again later
		w := replaceWorld(t, 2, deploymenttest.Model{})
		name := w.Machines()[2].Name
		for step := 0; ; step++ {
			d := replaceOnce(t, w, name)
			if d.Reason == deployment.ReasonComplete {
				break
			}
			if step == killed {
				w.Run(10 * time.Hour)
			}
			for range 3 {
				w.Step()
				require.GreaterOrEqual(t, available(w), 5, "%s", d)
				require.LessOrEqual(t, len(w.Machines()), 7)
			}
			require.Less(t, step, 50, "%s", d)
		}
		w.Run(time.Hour)
		require.Nil(t, w.Machine(name))
		require.Len(t, w.Machines(), 5)
		require.EqualValues(t, 5, w.Deployment().Spec.Replicas)
		require.NotContains(t, w.Deployment().Annotations, "machinist.dev/replacing")
	}
}

func TestReplace_NoSurge_DeletesAndTheSetCreates(t *testing.T) {
	w := replaceWorld(t, 0, deploymenttest.Model{})
	name := w.Machines()[2].Name
	d := replaceOnce(t, w, name)
	require.Equal(t, "delete machine "+name+": its set creates another one: the strategy of its deployment has no surge", d.Actions[0].String())
	w.Step()
	require.Equal(t, "it is being deleted", replaceOnce(t, w, name).Message)
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_NoCapacity_StopTakesTheReplicaBack(t *testing.T) {
	full := false
	w := replaceWorld(t, 1, deploymenttest.Model{Create: func(*v1alpha1.Machine) error {
		if full {
			return errNoVMs
		}
		return nil
	}})
	name := w.Machines()[2].Name
	full = true
	replaceOnce(t, w, name)
	w.Run(time.Hour)
	d := replaceOnce(t, w, name)
	require.Equal(t, "4 of 5 other machines available", d.Message)
	next, stopped := deployment.StopReplacing(w.Deployment())
	require.True(t, stopped)
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec, d.Annotations = next.Spec, next.Annotations }))
	w.Run(time.Hour)
	require.NotNil(t, w.Machine(name))
	require.Len(t, w.Machines(), 5)
	require.Equal(t, 5, available(w))
	_, stopped = deployment.StopReplacing(w.Deployment())
	require.False(t, stopped)
	_, stopped = deployment.StopReplacing(nil)
	require.False(t, stopped)
}

func TestReplace_DeletedMeanwhile_TakesTheReplicaBack(t *testing.T) {
	w := replaceWorld(t, 1, deploymenttest.Model{})
	name := w.Machines()[0].Name
	replaceOnce(t, w, name)
	require.NoError(t, w.DeleteMachine(name))
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "1 replica less, because machine "+name+" is deleted")
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_ReplicaTakenBackByAnother_BeginsAgain(t *testing.T) {
	w := replaceWorld(t, 1, deploymenttest.Model{})
	name := w.Machines()[0].Name
	replaceOnce(t, w, name)
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 5 }))
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "another client has taken back the replica")
	require.EqualValues(t, 5, w.Deployment().Spec.Replicas, "and no other one")
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "from 5 to 6 replicas")
}

func TestReplace_Impossible_Error(t *testing.T) {
	w := replaceWorld(t, 1, deploymenttest.Model{})
	name, other := w.Machines()[0].Name, w.Machines()[1].Name
	foreign, none, busy, odd := worldView(w), worldView(w), worldView(w), worldView(w)
	foreign.Sets = nil
	edit := func(in *deployment.Observation, change func(*v1alpha1.MachineDeployment)) {
		in.Deployment = in.Deployment.DeepCopy()
		change(in.Deployment)
	}
	edit(&none, func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 0 })
	edit(&busy, func(d *v1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{"machinist.dev/replacing": other + "~5"}
	})
	edit(&odd, func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.Type = "Hope" })
	for says, in := range map[string]deployment.Observation{
		"no deployment": {}, "does not own it": foreign, "wants no machines": none, "machine " + other + " of machinedeployment": busy, "strategy": odd,
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
