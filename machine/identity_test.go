// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestNodeToDelete_ByProviderID(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.MachineSpec{ProviderID: "cloud:///m"}}
	node := func(name, machineName string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.MachineNameLabelKey: machineName}}}
	}
	own, other, sameID := node("own", "m"), node("other", "n"), node("same-id", "m")
	for name, tc := range map[string]struct{ named, sameID, want *corev1.Node }{
		"neither exists":                            {nil, nil, nil},
		"the named Node is the machine's":           {own, sameID, own},
		"the named Node is another machine's":       {other, sameID, sameID},
		"the named Node does not exist":             {nil, sameID, sameID},
		"no Node has the provider ID":               {other, nil, other},
		"the Node with the ID is another machine's": {own, other, own},
		"both Nodes are another machine's":          {other, node("third", "n"), other},
		"only the Node of another machine exists":   {nil, other, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Same(t, tc.want, machine.NodeToDelete(m, tc.named, tc.sameID))
		})
	}
	require.Nil(t, machine.NodeToDelete(nil, nil, nil))
}
