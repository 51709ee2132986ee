// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestPhases_AnyRecordedPhase_FollowsReality asserts that a recorded phase does not decide how a machine
// ends: within a day it has the phase of what exists, and nothing is repeated. Only a Failed machine
// stays, because its owner replaces it.
func TestPhases_AnyRecordedPhase_FollowsReality(t *testing.T) {
	const running, failed, available = v1alpha1.MachineRunning, v1alpha1.MachineFailed, v1alpha1.MachineAvailable
	gone := status.Error(codes.NotFound, "none")
	unknown := func(in *machine.Observation) { // nothing of the VM is recorded
		in.Machine.Spec.ProviderID = ""
		delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	}
	unnamed := func(in *machine.Observation) { delete(in.Machine.Labels, v1alpha1.NodeLabelKey) }
	for name, c := range map[string]struct {
		changes []change
		look    error
		want    v1alpha1.MachinePhase
	}{
		"VM and healthy Node":                         {[]change{old, healthy, copied}, nil, running},
		"VM and healthy Node, nothing recorded":       {[]change{healthy, copied, unknown}, nil, running},
		"VM and unhealthy Node":                       {[]change{old, sick, copied}, nil, failed},
		"VM without a Node":                           {[]change{old}, nil, failed},
		"VM without a Node, the name is not recorded": {[]change{old, unnamed}, nil, failed},
		"Node without a VM":                           {[]change{old, sick, copied}, gone, failed},
		"nothing":                                     {[]change{old}, gone, failed},
		"nothing, and the name is not recorded":       {[]change{old, unnamed}, gone, failed},
		"nothing, and nothing recorded":               {[]change{old, unknown}, gone, failed},
		"nothing yet":                                 {[]change{unknown}, gone, failed},
		"VM without a cluster":                        {[]change{old, noTarget}, nil, available},
		"VM without a cluster, nothing recorded":      {[]change{noTarget, unknown}, nil, available},
		"nothing without a cluster":                   {[]change{old, noTarget, unknown}, gone, failed},
		"nothing yet without a cluster":               {[]change{noTarget, unknown}, gone, available},
	} {
		for _, begin := range append([]v1alpha1.MachinePhase{"Bogus"}, allPhases...) {
			t.Run(fmt.Sprintf("%s, phase %q", name, begin), func(t *testing.T) {
				in := living(begin, c.changes...)
				w := newWorld(in)
				w.lookErr = c.look
				for end := now.Add(24 * time.Hour); ; w.now = w.last.NextCheck.UTC() {
					w.mustRest(t)
					if w.last.NextCheck.IsZero() || w.last.NextCheck.After(end) {
						break
					}
				}
				want := c.want
				if begin == failed {
					want = failed
				}
				require.Equal(t, want, w.in.Machine.Status.CurrentStatus.Phase, w.log())
				require.Less(t, w.writes, 12, w.log())
			})
		}
	}
}

// TestPhases_AnyRecordedPhaseBeingDeleted_Ends asserts the same for a machine that is being deleted.
func TestPhases_AnyRecordedPhaseBeingDeleted_Ends(t *testing.T) {
	for _, begin := range append([]v1alpha1.MachinePhase{"Bogus"}, allPhases...) {
		for _, vm := range []bool{true, false} {
			w := newWorld(living(begin, leaving, healthy, func(in *machine.Observation) {
				if !vm {
					in.Machine.Spec.ProviderID, in.Node.Node = "", (*corev1.Node)(nil)
					in.Machine.Labels = nil
				}
			}))
			if !vm {
				w.lookErr = status.Error(codes.NotFound, "none")
			}
			require.True(t, w.run(t).released, "%q: %s", begin, w.log())
		}
	}
}
