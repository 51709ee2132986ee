// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Section 24, row by row; none of it is a nil check on a client (DM-46).
func TestSection24_WithoutATargetCluster(t *testing.T) {
	t.Parallel()
	absent := vm(machine.VMView{Sighting: machine.Absent})
	labelled := spec(func(m *v1alpha1.Machine) { m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"} })
	told := func(in *machine.Observation) { // that the label counts for nothing
		in.Machine = machine.Decide(*in, machine.DefaultPolicy(), now).Do.(machine.UpdateStatus).Machine
	}
	nameless := vm(machine.VMView{Sighting: machine.Uninitialized, ProviderID: "simulated:///1"})
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"bootstrap token: none is made, the placeholder stays":     {after(intended, needsToken, noTarget, absent), "create the VM (NoVM)"},
		"node label: never written":                                {after(intended, noTarget, seen(machine.Uninitialized)), "update machine: provider ID simulated:///1 (VMKnown)"},
		"node name: may be empty":                                  {after(intended, noTarget, nameless), "update machine: provider ID simulated:///1 (VMKnown)"},
		"and the VM is initialised all the same":                   {after(intended, withID, noTarget, nameless), "initialise the VM (VMUninitialized)"},
		"provider ID: required":                                    {after(intended, noTarget, vm(machine.VMView{Sighting: machine.Present, SeenAt: now})), `record phase "CrashLoopBackOff", Create Failed (ProviderFailed: Cloud provider message - the answer is incomplete: provider ID "", node name "")`},
		"success phase: Available":                                 {after(intended, withID, noTarget, seen(machine.Present)), `record phase "Available", Create Successful (VMCreated: Created machine on cloud provider)`},
		"health: off":                                              {living(v1alpha1.MachineAvailable, noTarget), "nothing (Available)"},
		"creation timeout: on, as long as there is no VM":          {after(intended, noTarget, old), `record phase "Failed", Create Failed (CreationTimeout: ` + timedOut + ")"},
		"creation timeout: off once it is Available":               {living(v1alpha1.MachineAvailable, noTarget, old), "nothing (Available)"},
		"hazard: a node label that somebody set is told":           {living(v1alpha1.MachineAvailable, noTarget, labelled), `record phase "Available",   (PartlyIgnored: metadata.labels[node]: Forbidden: there is no cluster to join)`},
		"hazard: and changes nothing (DM-46)":                      {living(v1alpha1.MachineAvailable, noTarget, labelled, told), "nothing (Available)"},
		"hazard: nor does a Node that is shown although":           {living(v1alpha1.MachineAvailable, sick, func(in *machine.Observation) { in.Node.NoTarget = true }, labelled, told), "nothing (Available)"},
		"deletion: begins":                                         {living(v1alpha1.MachineAvailable, noTarget, leaving), `record phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + ")"},
		"deletion: goes to the VM without a drain":                 {living(v1alpha1.MachineTerminating, noTarget, leaving), "delete the VM (Drained)"},
		"deletion: is over with the VM, without a Node to be gone": {living(v1alpha1.MachineTerminating, noTarget, leaving, vm(machine.VMView{}.After(machine.FromDelete(nil, nil), now, 0))), "update machine: no finalizer (Released)"},
	})
}

// Section 24: the addresses of every answer stand in the status of the machine.
func TestSection24_AddressesAreRecorded(t *testing.T) {
	t.Parallel()
	address := func(ip string) []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	}
	in := after(intended, withID, noTarget)
	in.Machine.Status.Addresses = address("10.0.0.9")
	in.VM = in.VM.After(machine.FromCreate(&driver.CreateMachineResponse{ProviderID: "simulated:///1", NodeName: "n", Addresses: address("10.0.0.2")}, nil), now, 0)
	in.VM = in.VM.After(machine.FromStatus(&driver.GetMachineStatusResponse{ProviderID: "simulated:///1", Addresses: address("10.0.0.1")}, status.Error(codes.Uninitialized, "")), now, 0)
	in.VM = in.VM.After(machine.FromInitialize(&driver.InitializeMachineResponse{Addresses: address("10.0.0.2")}, nil), now.Add(time.Second), 0)
	m := lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus).Machine
	require.Equal(t, v1alpha1.MachineAvailable, m.Status.CurrentStatus.Phase)
	require.False(t, m.Status.CurrentStatus.TimeoutActive)
	require.Equal(t, []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.9"},
	}, m.Status.Addresses)

	in.Node = machine.NodeView{Looked: true, AsOf: now}
	in.Machine.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
	m = lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus).Machine
	require.Equal(t, v1alpha1.MachinePending, m.Status.CurrentStatus.Phase)
	require.Equal(t, address("10.0.0.9"), m.Status.Addresses, "with a cluster, its Node has them")
}
