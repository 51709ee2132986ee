// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestWithoutACandidateNobodyIsExcepted(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineFailed, v1alpha1.MachineInPlaceUpdateFailed} {
		m := newMachine("m")
		m.UID = "uid-m"
		m.Status.CurrentStatus.Phase = phase
		require.Equal(t, 1, machine.Replacing([]*v1alpha1.Machine{nil, m}, nil), phase)
	}
}
