// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// quotaWorld has places for so many machines and no more.
func quotaWorld(t *testing.T, d *v1alpha1.MachineDeployment, quota int, p deployment.NoCapacity) *rollWorld {
	w := newRollWorld(t, d)
	w.policy.OnNoCapacity = p
	placed := map[string]bool{}
	for _, m := range w.all {
		placed[m.Name] = true
	}
	w.grow = func(m *v1alpha1.Machine) {
		taken := 0
		for _, x := range w.all {
			if placed[x.Name] {
				taken++
			}
		}
		if !placed[m.Name] && taken >= quota {
			m.Status.CurrentStatus.Phase = v1alpha1.MachineCrashLoopBackOff
			m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted", Description: "no more machines in this zone"}
			return
		}
		placed[m.Name] = true
		w.become(m, v1alpha1.MachineRunning)
	}
	w.template("c2")
	return w
}

func TestR7WithQuotaForNoMoreThanTheReplicas(t *testing.T) {
	t.Run("waiting changes nothing that the bounds do not allow", func(t *testing.T) {
		for _, p := range []deployment.NoCapacity{"", deployment.NoCapacityWait} {
			w := quotaWorld(t, rolling(3, 1, 0), 3, p)
			for range 50 {
				w.step()
			}
			require.Equal(t, 3, w.least)
			require.Empty(t, w.left)
			require.Equal(t, deployment.ReasonRollingOut, w.last.Reason)
			require.Contains(t, w.last.String(), "c2-006: NoCapacity: no capacity for 1 of the machines of md-5b664; the roll-out goes on as far as it can without it: no more machines in this zone")
		}
	})
	t.Run("waiting goes on where a machine may be unavailable", func(t *testing.T) {
		w := quotaWorld(t, rolling(3, 1, 1), 3, deployment.NoCapacityWait)
		rollEnds(t, w)
		require.Equal(t, 2, w.least)
	})
	t.Run("machines make place, one at a time", func(t *testing.T) {
		for _, surge := range []int32{1, 2, 3} {
			w := quotaWorld(t, rolling(3, surge, 0), 3, deployment.NoCapacityUseUnavailable)
			rollEnds(t, w)
			require.Equal(t, 2, w.least, "never more than one is given up")
			require.LessOrEqual(t, w.most, int(3+surge))
		}
	})
	t.Run("a broken machine makes place first, at no cost", func(t *testing.T) {
		w := quotaWorld(t, rolling(3, 1, 0), 3, deployment.NoCapacityUseUnavailable)
		sick, grow := w.all[2], w.grow
		w.become(sick, v1alpha1.MachineUnknown)
		w.grow = func(m *v1alpha1.Machine) {
			if m != sick {
				grow(m)
			}
		}
		w.least = 2
		rollEnds(t, w)
		require.Equal(t, sick.Name, w.left[0])
		require.Equal(t, 2, w.least)
	})
	t.Run("stopping replaces nothing until there is capacity", func(t *testing.T) {
		d := rolling(3, 1, 1)
		quota := 3
		w := quotaWorld(t, d, quota, deployment.NoCapacityStop)
		w.step() // the new set comes
		w.step() // its machine has no place
		gone := len(w.left)
		for range 50 {
			w.step()
		}
		require.Len(t, w.left, gone)
		require.Contains(t, w.last.String(), "nothing is replaced until there is some")
		require.Empty(t, w.last.Actions)
		w.grow = func(m *v1alpha1.Machine) { w.become(m, v1alpha1.MachineRunning) }
		rollEnds(t, w)
	})
	t.Run("a change of the replicas is carried out all the same", func(t *testing.T) {
		w := quotaWorld(t, rolling(3, 1, 0), 3, deployment.NoCapacityStop)
		for range 5 {
			w.step()
		}
		w.scale(1)
		for range 30 {
			w.step()
		}
		require.LessOrEqual(t, len(w.all), 2)
	})
	t.Run("a recreation tells of it and waits", func(t *testing.T) {
		d := rollDeployment(3, v1alpha1.RecreateMachineDeploymentStrategyType, intstr.FromInt32(0), intstr.FromInt32(0))
		w := quotaWorld(t, d, 2, deployment.NoCapacityUseUnavailable)
		for range 30 {
			w.step()
		}
		require.Contains(t, rollReasons(w.last), deployment.ReasonNoCapacity)
	})
}

func TestWhatCountsAsNoCapacity(t *testing.T) {
	d := rolling(1, 1, 0)
	m := rollMachine(rollSet(d, "c1", 1, 1, 0), "m", v1alpha1.MachineCrashLoopBackOff)
	m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted"}
	require.True(t, deployment.NoCapacityFor(m))
	for name, change := range map[string]func(m *v1alpha1.Machine){
		"another code":      func(m *v1alpha1.Machine) { m.Status.LastOperation.ErrorCode = "Internal" },
		"another operation": func(m *v1alpha1.Machine) { m.Status.LastOperation.Type = v1alpha1.MachineOperationHealthCheck },
		"another attempt":   func(m *v1alpha1.Machine) { m.Status.LastOperation.State = v1alpha1.MachineStateProcessing },
		"available":         func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning },
		"leaving":           func(m *v1alpha1.Machine) { m.DeletionTimestamp = &m.CreationTimestamp },
	} {
		other := m.DeepCopy()
		change(other)
		require.False(t, deployment.NoCapacityFor(other), name)
	}
}
