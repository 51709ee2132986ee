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
		"of a machine that runs they do not":     {of(v1alpha1.MachineRunning), false},
		"of one that goes they do":               {of(v1alpha1.MachineRunning, leaving), true},
		"also without Node":                      {living(v1alpha1.MachineRunning, leaving), true},
		"a candidate's do not":                   {of(v1alpha1.MachineRunning, updates(v1alpha1.CandidateForUpdate)), false},
		"once it is selected they do":            {of(v1alpha1.MachineRunning, updates(v1alpha1.SelectedForUpdate)), true},
		"until it is drained":                    {of(v1alpha1.MachineInPlaceUpdating, updates(v1alpha1.DrainSuccessful)), false},
		"a failed machine's do not":              {of(v1alpha1.MachineFailed), false},
		"one's that is preserved do":             {of(v1alpha1.MachineFailed, ending(time.Hour)), true},
		"not without a Node":                     {living(v1alpha1.MachineFailed, ending(time.Hour)), false},
		"also if pods could not be moved":        {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node could not be drained.")), true},
		"until it is drained for that":           {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node drained successfully. Machine preserved until x.")), false},
		"one's that is preserved and runs don't": {of(v1alpha1.MachineRunning, ending(time.Hour)), false},
	} {
		require.Equal(t, tc.want, machine.Drains(tc.in.Machine, tc.in.Node.Node), name)
	}
	require.False(t, machine.Drains(nil, nil))
}
