// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// notFound is a VM that the provider did not find so long ago.
func notFound(ago time.Duration) change {
	return vm(machine.VMView{Sighting: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-ago)})
}

func TestAVMThatVanishesIsToldAndNothingElse(t *testing.T) {
	t.Parallel()
	const (
		pending = v1alpha1.MachinePending
		running = v1alpha1.MachineRunning
		unknown = v1alpha1.MachineUnknown
	)
	text := "Machine m is unhealthy. The VM simulated:///1 is not found at the provider"
	told := operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, text, "")
	pendingText := v1alpha1.CreatingMachine + ". The VM simulated:///1 is not found at the provider"
	pendingTold := operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, pendingText, "")
	gone := "nothing (NodeGone: the node does not exist); waits for node/n: NodeGone: the node does not exist"
	joins := "nothing (WaitingForNode: the node has not joined yet); waits for node/n: WaitingForNode: the node has not joined yet"
	provider := "; waits for provider: VMVanished: the VM simulated:///1 is not found"
	seenAgo := func(ago time.Duration) change {
		return vm(machine.VMView{Sighting: machine.Present, SeenAt: now.Add(-ago)})
	}
	longPending := spec(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-6 * time.Minute))
	})
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a machine that is doubted has its VM looked for":     {living(unknown), "look for the VM (NodeGone: the node does not exist)"},
		"also if it was seen before":                          {living(unknown, seenAgo(2*time.Minute)), "look for the VM (NodeGone: the node does not exist)"},
		"also if its Node is sick":                            {living(unknown, sick, copied), "look for the VM (NodeUnhealthy: the node is unhealthy: [Ready=Unknown (Kubelet)])"},
		"one that is there changes nothing":                   {living(unknown, looked), gone},
		"one that is not is told":                             {living(unknown, notFound(0)), `record phase "Unknown", HealthCheck Processing (VMVanished: ` + text + ")"},
		"once":                                                {living(unknown, notFound(0), told), gone + provider},
		"and looked for again after a while":                  {living(unknown, longUnknown, notFound(5*time.Minute), told, patient), "look for the VM (NodeGone: the node does not exist)"},
		"it fails when its time is over, and tells why":       {living(unknown, longUnknown, notFound(time.Minute), told), `record phase "Failed", HealthCheck Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition]. The VM simulated:///1 is not found at the provider)`},
		"one that joins was seen just before":                 {living(pending), joins},
		"and is looked for after a while":                     {living(pending, longPending), "look for the VM (WaitingForNode: the node has not joined yet)"},
		"it is told of, and nothing is made in its place":     {living(pending, notFound(0)), `record phase "Pending", Create Processing (VMVanished: ` + pendingText + ")"},
		"that is told once as well":                           {living(pending, notFound(0), pendingTold), joins + provider},
		"who waits for components is not looked for":          {living(pending, longPending, healthy, taint, copied), "nothing (CriticalComponentsNotReady: critical components are not ready); waits for node/n: CriticalComponentsNotReady: critical components are not ready"},
		"nor is one that runs":                                {living(running, healthy, copied), "nothing (NodeReady)"},
		"nor one of which nobody knows the class":             {living(unknown, noClass), gone},
		"a provider that fails is asked no more often":        {living(unknown, failure(driver.OpGetMachineStatus, codes.Internal, time.Second, machine.NotLooked)), gone},
		"one that failed long ago is":                         {living(unknown, patient, longUnknown, failure(driver.OpGetMachineStatus, codes.Internal, 6*time.Minute, machine.NotLooked)), "look for the VM (NodeGone: the node does not exist)"},
		"the timeout does not wait for it":                    {living(unknown, longUnknown), `record phase "Failed",  Failed (HealthTimeout: Machine m health checks failing since last 10m0s. Updating machine phase to Failed. Node Conditions: [no Ready condition])`},
		"conditions are recorded first, in their own write":   {living(unknown, sick), `record phase "Unknown",   (ConditionsChanged)`},
		"a vanished VM of an updated machine is not asked of": {living(v1alpha1.MachineInPlaceUpdateFailed), "nothing (NodeGone: the node does not exist); waits for node/n: NodeGone: the node does not exist"},
	})
}

func TestTheVMOfAnUnknownMachineIsLookedForEveryFewMinutes(t *testing.T) {
	t.Parallel()
	in, p := living(v1alpha1.MachineUnknown), machine.Policy{}
	looks := 0
	for at := now; at.Before(now.Add(time.Hour)); {
		d := machine.Decide(in, p, at)
		switch d.Do.(type) {
		case machine.LookForVM:
			looks++
			in.VM = in.VM.After(machine.FromStatus(&driver.GetMachineStatusResponse{ProviderID: "simulated:///1", NodeName: "n"}, nil), at, 0)
		case nil:
			require.Equal(t, 5*time.Minute, d.NextCheck.Sub(at))
			at = d.NextCheck
		default:
			t.Fatal(d)
		}
	}
	require.Equal(t, 12, looks)
}

// Nodes that the label of a machine names and that belong to another (DM-39).
func TestAProviderThatCannotTellIsNotAskedAndNotBelieved(t *testing.T) {
	t.Parallel()
	blind := machine.VMView{}.After(machine.FromStatus(nil, status.Error(codes.Unimplemented, "no")), now.Add(-time.Hour), 0)
	require.True(t, blind.Blind)
	require.False(t, blind.After(machine.FromStatus(nil, status.Error(codes.NotFound, "none")), now, 0).Blind)
	d := lawful(t, living(v1alpha1.MachineUnknown, vm(blind)), machine.DefaultPolicy())
	require.Nil(t, d.Do)
	require.NotContains(t, d.String(), "not found")
}

func TestTheNodeOfAnotherIsNotThere(t *testing.T) {
	t.Parallel()
	older := func(id string) change {
		return onNode(func(n *corev1.Node) {
			n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(now.Add(-time.Hour)), id
			delete(n.Labels, v1alpha1.MachineNameLabelKey)
		})
	}
	labelled := func(name string) change {
		return onNode(func(n *corev1.Node) { n.Labels[v1alpha1.MachineNameLabelKey] = name })
	}
	failed := `record phase "Failed", Create Failed (StaleNode: VM using old node obj)`
	waits := "nothing (StaleNode: the node belongs to another machine); waits for node/n: StaleNode: the node belongs to another machine"
	named := "update node: machine name (NodeOutOfSync)"
	byItsName := func(in *machine.Observation) {
		in.Machine.Labels[v1alpha1.NodeLabelKey], in.Node.Node.Name = "m", "m"
	}
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a name of another tells":                                 {living(v1alpha1.MachinePending, healthy, ofAnother), failed},
		"at once, on the way to the VM (§6.5)":                    {after(withID, intended, seen(machine.Uninitialized), healthy, ofAnother), failed},
		"so does the VM of another, if it was there before":       {living(v1alpha1.MachinePending, healthy, older("simulated:///2")), failed},
		"not the same VM in other words":                          {living(v1alpha1.MachinePending, healthy, older("simulated:///zone/1")), named},
		"nor a VM that is not known":                              {living(v1alpha1.MachinePending, healthy, older("")), named},
		"nor a Node that came after the machine":                  {living(v1alpha1.MachinePending, healthy, older("simulated:///2"), onNode(func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(now) })), named},
		"nor one whose age is not known":                          {living(v1alpha1.MachinePending, healthy, older("simulated:///2"), onNode(func(n *corev1.Node) { n.CreationTimestamp = metav1.Time{} })), named},
		"nor one of the machine's name that another cloud names":  {living(v1alpha1.MachinePending, intended, healthy, older("other:///9"), labelled("m")), `record phase "Running", Create Successful (NodeReady: Machine m successfully joined the cluster in 5m0s)`},
		"a Node that came before its machine may be its own":      {living(v1alpha1.MachinePending, healthy, older("simulated:///1"), byItsName), named},
		"a machine that ran is doubted":                           {living(v1alpha1.MachineRunning, healthy, ofAnother), `record phase "Unknown", HealthCheck Processing (NodeGone: Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown)`},
		"and waits for its own Node":                              {living(v1alpha1.MachineUnknown, healthy, ofAnother, looked), waits},
		"one that failed waits for its owner":                     {living(v1alpha1.MachineFailed, healthy, ofAnother), "nothing (Failed: waits to be replaced by its owner); waits for machine/m: Failed: waits to be replaced by its owner"},
		"it is not deleted with that Node":                        {living(v1alpha1.MachineUnknown, looked, healthy, ofAnother, onNode(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: now} })), waits},
		"an update in place of another's Node is none of its own": {living(v1alpha1.MachineInPlaceUpdating, healthy, ofAnother, withResult("successful")), waits},
	})
}

// TestTheNodeOfAnotherIsNeverWritten asserts it for observations of any kind.
func TestTheNodeOfAnotherIsNeverWritten(t *testing.T) {
	t.Parallel()
	others := 0
	anyLives(40000, 23, func(seed uint64, in machine.Observation, d machine.Decision) {
		n := in.Node.Node
		if n == nil || n.Labels[v1alpha1.MachineNameLabelKey] == "" || n.Labels[v1alpha1.MachineNameLabelKey] == in.Machine.Name {
			return
		}
		others++
		switch d.Do.(type) {
		case machine.UpdateNode, machine.UpdateNodeCapacity, machine.SetNodeCondition, machine.DrainNode, machine.DeleteNode, machine.DeleteMachine:
			t.Fatalf("seed %d: %s", seed, d)
		}
	})
	require.Greater(t, others, 500)
}
