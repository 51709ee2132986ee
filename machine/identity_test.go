// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestNothingIsConcludedFromALostProviderID(t *testing.T) {
	t.Parallel()
	lost := spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID = "" })
	runs := func(changes ...change) machine.Observation {
		return after(append([]change{withID, lost, old, phase(v1alpha1.MachineRunning), node(ready(corev1.ConditionTrue)), copied}, changes...)...)
	}
	waits := "nothing (VMUnknown: its provider ID is not known); waits for machine/m: VMUnknown: its provider ID is not known"
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"its VM is looked for":                       {runs(), "look for the VM (LookFirst)"},
		"and its ID is written down again":           {runs(seen(machine.Present)), "update machine: provider ID simulated:///1 (VMKnown)"},
		"none is made if it is not found":            {runs(vm(machine.VMView{Sighting: machine.Absent, SeenAt: now})), waits},
		"nor if that was intended once":              {runs(intended, vm(machine.VMView{Sighting: machine.Absent, SeenAt: now})), waits},
		"nor does it fail because the provider does": {runs(failure(driver.OpGetMachineStatus, codes.Internal, 0, machine.NotLooked)), waits},
		"it is watched as before": {
			after(withID, lost, old, phase(v1alpha1.MachineRunning), vm(machine.VMView{Sighting: machine.Absent, SeenAt: now})),
			`record phase "Unknown", HealthCheck Processing (NodeGone: Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown)`,
		},
		"one that failed waits for its owner": {runs(phase(v1alpha1.MachineFailed)), "nothing (Failed: waits to be replaced by its owner); waits for machine/m: Failed: waits to be replaced by its owner"},
	})
}
