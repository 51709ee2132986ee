// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
