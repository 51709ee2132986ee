// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

const day = 24 * time.Hour

// settled is a world in which all machines have come up.
func settled(t testing.TB, d *v1alpha1.MachineDeployment, m deploymenttest.Model) *deploymenttest.World {
	t.Helper()
	w, err := deploymenttest.New(d, m)
	require.NoError(t, err)
	_, rest := w.Run(day)
	require.True(t, rest)
	return w
}

func class(name string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = name }
}

func size(replicas int32, surge string) *v1alpha1.MachineDeployment {
	d := ofThree()
	more := intstr.Parse(surge)
	d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxSurge = replicas, &more
	return d
}

func complete(t testing.TB, w *deploymenttest.World) {
	t.Helper()
	_, rest := w.Run(10 * day)
	require.True(t, rest)
	require.Equal(t, deployment.ReasonComplete, w.Decision().Reason, "%s", w.Decision())
}

func TestADeploymentThatCannotBePlayedIsAnError(t *testing.T) {
	invalid := ofThree()
	invalid.Spec.Replicas = -1
	for name, d := range map[string]*v1alpha1.MachineDeployment{"nil": nil, "empty": {}, "negative": invalid} {
		t.Run(name, func(t *testing.T) {
			_, err := deploymenttest.New(d, deploymenttest.Model{})
			require.ErrorIs(t, err, deploymenttest.ErrInvalid)
		})
	}
}

func TestTheDeploymentThatIsGivenIsNotModified(t *testing.T) {
	d := ofThree()
	before := d.DeepCopy()
	w := settled(t, d, deploymenttest.Model{})
	require.NoError(t, w.Edit(class("large")))
	complete(t, w)
	require.Equal(t, before, d)
}

func TestNamesAreMadeUpIfThereAreNone(t *testing.T) {
	d := ofThree()
	d.Name, d.Namespace = "", ""
	w := settled(t, d, deploymenttest.Model{})
	require.NotEmpty(t, w.Deployment().Name)
	require.NotEmpty(t, w.Deployment().Namespace)
	require.NotEmpty(t, w.Deployment().UID)
}

func TestWritesAreRefusedAsAnAPIServerRefusesThem(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	m := w.Machines()[0]
	t.Run("a stale resource version is a conflict", func(t *testing.T) {
		require.True(t, apierrors.IsConflict(w.EditMachine(m.Name, func(m *v1alpha1.Machine) { m.ResourceVersion = "1" })))
	})
	t.Run("another UID is a conflict", func(t *testing.T) {
		require.True(t, apierrors.IsConflict(w.EditMachine(m.Name, func(m *v1alpha1.Machine) { m.UID = "other" })))
	})
	t.Run("what is not there is not found", func(t *testing.T) {
		require.True(t, apierrors.IsNotFound(w.DeleteMachine("none")))
		require.True(t, apierrors.IsNotFound(w.SetPhase("none", v1alpha1.MachineFailed)))
		require.True(t, apierrors.IsNotFound(w.Vanish("none")))
		require.True(t, apierrors.IsNotFound(w.EditSet("none", func(*v1alpha1.MachineSet) {})))
		require.True(t, apierrors.IsNotFound(w.EditNode("none", func(*corev1.Node) {})))
	})
	t.Run("a change of the spec raises the generation, one of labels does not", func(t *testing.T) {
		generation := w.Deployment().Generation
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"a": "b"} }))
		require.Equal(t, generation, w.Deployment().Generation)
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.MinReadySeconds = 1 }))
		require.Equal(t, generation+1, w.Deployment().Generation)
	})
	t.Run("an update that changes nothing is no write", func(t *testing.T) {
		version := w.Deployment().ResourceVersion
		require.NoError(t, w.Edit(func(*v1alpha1.MachineDeployment) {}))
		require.Equal(t, version, w.Deployment().ResourceVersion)
	})
	t.Run("an update does not touch the status", func(t *testing.T) {
		require.NoError(t, w.EditMachine(m.Name, func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed }))
		require.Equal(t, v1alpha1.MachineRunning, w.Machine(m.Name).Status.CurrentStatus.Phase)
	})
	t.Run("what is being deleted takes no new finalizer, and is there until the last one goes", func(t *testing.T) {
		require.NoError(t, w.DeleteMachine(m.Name))
		require.NotNil(t, w.Machine(m.Name).DeletionTimestamp)
		require.True(t, apierrors.IsForbidden(w.EditMachine(m.Name, func(m *v1alpha1.Machine) { m.Finalizers = append(m.Finalizers, "another") })))
		require.NoError(t, w.EditMachine(m.Name, func(m *v1alpha1.Machine) { m.Finalizers = nil }))
		require.Nil(t, w.Machine(m.Name))
	})
	t.Run("what was deleted is made anew", func(t *testing.T) {
		complete(t, w)
		require.Len(t, w.Machines(), 3)
	})
}

func TestDeletingTheDeploymentTakesEverythingDown(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	require.Len(t, w.Nodes(), 3)
	require.NoError(t, w.Delete())
	_, rest := w.Run(day)
	require.True(t, rest)
	require.Nil(t, w.Deployment())
	require.Empty(t, w.Sets())
	require.Empty(t, w.Machines())
	require.Empty(t, w.Nodes())
	require.True(t, apierrors.IsNotFound(w.Edit(class("large"))))
}

func TestWithoutAClusterThereAreNoNodes(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{NoCluster: true})
	require.NoError(t, w.Edit(class("large")))
	complete(t, w)
	require.Empty(t, w.Nodes())
	for _, m := range w.Machines() {
		require.Equal(t, v1alpha1.MachineAvailable, m.Status.CurrentStatus.Phase)
		require.Nil(t, w.Node(m))
	}
	require.Nil(t, w.Node(nil))
}

func TestMachinesThatFailAreReplaced(t *testing.T) {
	for name, harm := range map[string]func(*deploymenttest.World, string) error{
		"failed":   func(w *deploymenttest.World, name string) error { return w.SetPhase(name, v1alpha1.MachineFailed) },
		"deleted":  (*deploymenttest.World).DeleteMachine,
		"vanished": (*deploymenttest.World).Vanish,
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, ofThree(), deploymenttest.Model{})
			gone := w.Machines()[0].Name
			require.NoError(t, harm(w, gone))
			complete(t, w)
			require.Nil(t, w.Machine(gone))
			require.Len(t, w.Machines(), 3)
		})
	}
}

func TestAMachineThatDoesNotComeUpInTimeIsReplaced(t *testing.T) {
	first := ""
	w := settled(t, size(1, "1"), deploymenttest.Model{
		CreationTimeout: 20 * time.Minute,
		Join: func(m *v1alpha1.Machine) (time.Duration, bool) {
			if first == "" {
				first = m.Name
			}
			return time.Minute, m.Name != first
		},
	})
	require.Nil(t, w.Machine(first))
	require.Len(t, w.Machines(), 1)
	require.Equal(t, 21*time.Minute, w.Now().Sub(w.Deployment().CreationTimestamp.Time), "it times out, and the other one takes its place")
}

func TestAProviderWithoutCapacityIsAskedAgain(t *testing.T) {
	full := true
	model := deploymenttest.Model{Create: func(*v1alpha1.Machine) error {
		if full {
			return status.Error(codes.ResourceExhausted, "no capacity")
		}
		return nil
	}}
	w := settled(t, ofThree(), model)
	for _, m := range w.Machines() {
		require.Equal(t, v1alpha1.MachineCrashLoopBackOff, m.Status.CurrentStatus.Phase)
		require.Equal(t, codes.ResourceExhausted.String(), m.Status.LastOperation.ErrorCode)
	}
	require.NotEqual(t, deployment.ReasonComplete, w.Decision().Reason)
	full = false
	complete(t, w)
}

func TestUpdatesInPlaceEnd(t *testing.T) {
	d := ofThree()
	bounds := d.Spec.Strategy.RollingUpdate.UpdateConfiguration
	zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
	bounds.MaxSurge, bounds.MaxUnavailable = &zero, &one
	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type:          v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: bounds, OrchestrationType: v1alpha1.OrchestrationTypeAuto},
	}
	for name, works := range map[string]bool{"that work": true, "that fail": false} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, d, deploymenttest.Model{
				HealthTimeout: 10 * time.Minute,
				Update:        func(*v1alpha1.Machine) (time.Duration, bool) { return time.Minute, works },
			})
			before := w.Machines()
			require.NoError(t, w.Edit(class("large")))
			complete(t, w)
			for _, m := range before {
				require.Equal(t, works, w.Machine(m.Name) != nil)
			}
			for _, n := range w.Nodes() {
				require.False(t, n.Spec.Unschedulable)
				require.Empty(t, n.Spec.Taints)
			}
		})
	}
}

// troubled is a model in which caches are always behind and calls fail in turn.
func troubled() deploymenttest.Model {
	calls, turns := 0, 0
	return deploymenttest.Model{
		Lag:  func(_ string, k string) int { turns++; return turns % (2 + len(k)%3) },
		Idle: func(string) bool { turns++; return turns%5 == 0 },
		Call: func(_, _, _, _ string) deploymenttest.Outcome {
			if calls++; calls%7 == 0 {
				return deploymenttest.Outcome(1 + calls/7%4)
			}
			return deploymenttest.Done
		},
	}
}

func TestAWorldInTroubleArrivesNevertheless(t *testing.T) {
	w := settled(t, size(4, "2"), troubled())
	require.NoError(t, w.Edit(class("large")))
	most := 0
	for _, ok := w.Step(); ok; _, ok = w.Step() {
		most = max(most, len(w.Machines()))
	}
	require.LessOrEqual(t, most, 6)
	complete(t, w)
}

func TestTwoRunsAreTheSame(t *testing.T) {
	tell := func() (out []string) {
		model := troubled()
		model.OnWrite = func(c deploymenttest.Change) { out = append(out, fmt.Sprint(c.At, c.By, c.Kind, c.Name)) }
		w := settled(t, size(4, "2"), model)
		require.NoError(t, w.Edit(class("large")))
		for f, ok := w.Step(); ok; f, ok = w.Step() {
			out = append(out, fmt.Sprint(f.At, f.Events, f.Sets, f.Decision, f.Sizes))
		}
		return out
	}
	require.Equal(t, tell(), tell())
}

// What is watched is what happens, and in its order.
func TestWatchIsToldEverything(t *testing.T) {
	created, gone, plans, setPlans := 0, 0, 0, 0
	model := deploymenttest.Model{}
	version := map[string]string{}
	model.OnWrite = func(c deploymenttest.Change) {
		key := c.Kind + "/" + c.Name
		if c.Before != nil {
			require.Equal(t, version[key], c.Before.GetResourceVersion(), "%s: a write is missing", key)
		}
		switch {
		case c.After == nil:
			delete(version, key)
		default:
			version[key] = c.After.GetResourceVersion()
		}
		if c.Kind == machine.KindMachine && c.Before == nil {
			created++
		}
		if c.Kind == machine.KindMachine && c.After == nil {
			gone++
		}
	}
	model.OnDecision = func(in deployment.Observation, _ deployment.Decision) { plans++; require.NotNil(t, in.Deployment) }
	model.OnSetDecision = func(in machineset.Observation, _ machineset.Decision) { setPlans++; require.NotNil(t, in.Set) }
	w := settled(t, ofThree(), model)
	require.NoError(t, w.Edit(class("large")))
	complete(t, w)
	require.Equal(t, 6, created)
	require.Equal(t, 3, gone)
	require.Positive(t, plans)
	require.Positive(t, setPlans)
}

func TestTimeIsOnlyMovedForward(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{Start: time.Unix(1000, 0)})
	now := w.Now()
	require.True(t, now.After(time.Unix(1000, 0)))
	w.Wait(time.Hour)
	w.Wait(-time.Hour)
	require.Equal(t, now.Add(time.Hour), w.Now())
	require.NoError(t, w.Edit(class("large")))
	f, ok := w.Step()
	require.True(t, ok)
	require.Equal(t, now.Add(time.Hour), f.At)
}

func TestWhatIsToHappenAtATimeHappensThen(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	var told []string
	begin := w.Now()
	tell := func(text string) func(*deploymenttest.World) {
		return func(w *deploymenttest.World) { told = append(told, fmt.Sprint(text, w.Now().Sub(begin))) }
	}
	w.At(begin.Add(5*time.Hour), tell("third "))
	w.At(begin.Add(time.Minute), tell("second "))
	w.At(begin.Add(-time.Minute), tell("first "))
	w.At(begin, nil)
	_, rest := w.Run(day)
	require.True(t, rest)
	require.Equal(t, []string{"first 0s", "second 1m0s", "third 5h0m0s"}, told)
}

func TestRunEndsAtItsLimit(t *testing.T) {
	w, err := deploymenttest.New(ofThree(), deploymenttest.Model{})
	require.NoError(t, err)
	_, rest := w.Run(time.Minute)
	require.False(t, rest)
	require.Equal(t, time.Minute, w.Now().Sub(w.Deployment().CreationTimestamp.Time))
	require.NotEqual(t, deployment.ReasonComplete, w.Decision().Reason)
}

func TestErrorsOfTheProviderKeepTheirCode(t *testing.T) {
	w := settled(t, size(1, "1"), deploymenttest.Model{Create: func(*v1alpha1.Machine) error { return errors.New("no code") }})
	require.Equal(t, codes.Unknown.String(), w.Machines()[0].Status.LastOperation.ErrorCode)
}

// BenchmarkRollOut rolls 5,000 machines.
func BenchmarkRollOut(b *testing.B) {
	for _, surge := range []string{"10%", "25%"} {
		b.Run("5000 machines, surge "+surge, func(b *testing.B) {
			for b.Loop() {
				w := settled(b, size(5000, surge), deploymenttest.Model{})
				require.NoError(b, w.Edit(class("large")))
				complete(b, w)
			}
		})
	}
}
