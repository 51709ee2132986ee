// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestBrokenMachinesMakePlaceOneAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		spec, machines, fresh int32
		want                  []string
	}{
		"all that are wanted have a place":          {3, 3, 1, []string{"scale md-c0 from 3 to 2: it makes place for a new machine, as there is no capacity for more"}},
		"the one before is not gone yet":            {2, 3, 1, nil},
		"the place of the one before is free still": {2, 2, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 0)
			in := rollSee(d, rollSet(d, "c0", c.spec, c.machines, 1), rollSet(d, "c1", c.fresh, c.fresh, 0))
			for _, m := range in.Machines[1:c.machines] {
				m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
			}
			for _, m := range in.Machines[c.machines:] {
				m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted"}
			}
			policy := rollPolicy
			policy.FreeCapacity = true
			require.Equal(t, c.want, rollLines(deployment.Decide(in, policy, rollNow)))
		})
	}
}
