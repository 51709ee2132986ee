// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestDrains_EachState_ReportsWhetherPodsMatter(t *testing.T) {
	of := func(p v1alpha1.MachinePhase, changes ...change) machine.Observation {
		return living(p, append([]change{healthy}, changes...)...)
	}
	said := func(message string) change {
		return onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodePreserved, Message: message})
		})
	}
	for name, tc := range map[string]struct {
		in   machine.Observation
		want bool
	}{
		"Running: no":                             {of(v1alpha1.MachineRunning), false},
		"being deleted: yes":                      {of(v1alpha1.MachineRunning, leaving), true},
		"being deleted without a Node: yes":       {living(v1alpha1.MachineRunning, leaving), true},
		"candidate for an update: no":             {of(v1alpha1.MachineRunning, updates(v1alpha1.CandidateForUpdate)), false},
		"selected for an update: yes":             {of(v1alpha1.MachineRunning, updates(v1alpha1.SelectedForUpdate)), true},
		"drained for an update: no":               {of(v1alpha1.MachineInPlaceUpdating, updates(v1alpha1.DrainSuccessful)), false},
		"Failed: no":                              {of(v1alpha1.MachineFailed), false},
		"Failed and preserved: yes":               {of(v1alpha1.MachineFailed, ending(time.Hour)), true},
		"Failed and preserved without a Node: no": {living(v1alpha1.MachineFailed, ending(time.Hour)), false},
		"Failed and preserved, drain failed: yes": {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node could not be drained.")), true},
		"Failed and preserved, drained: no":       {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node drained successfully. Machine preserved until x.")), false},
		"Running and preserved: no":               {of(v1alpha1.MachineRunning, ending(time.Hour)), false},
	} {
		require.Equal(t, tc.want, machine.Drains(tc.in.Machine, tc.in.Node.Node), name)
	}
	require.False(t, machine.Drains(nil, nil))
}
