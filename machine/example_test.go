// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The life of a machine, from nothing to Running and out again, on a simulated
// cloud. The machine and its Node are kept in variables instead of an API
// server.
func Example() {
	ctx := context.Background()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clock})
	class, secret := cloud.MachineClass("shoot", "small"), cloud.Secret("shoot", "small")
	class.Finalizers = []string{v1alpha1.MCMFinalizerName}

	in := machine.Observation{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", CreationTimestamp: metav1.NewTime(clock.Now())},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}},
		},
		Class: machine.ClassView{Looked: true, Class: class},
		Node:  machine.NodeView{Looked: true},

		ProviderID: machine.ProviderIDView{Compared: true},
	}
	// live decides and acts until there is nothing to do.
	live := func() {
		for {
			d := machine.Decide(in, machine.DefaultPolicy(), clock.Now())
			fmt.Println(d)
			m := in.Machine
			switch a := d.Action.(type) {
			case nil:
				return
			case machine.UpdateMachine:
				in.Machine = a.Machine
			case machine.UpdateStatus:
				in.Machine = a.Machine
			case machine.LookForVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM:
				answer, err := machine.Call(ctx, cloud, a, m, class, secret)
				if err != nil {
					panic(err)
				}
				in.VM = in.VM.After(answer, clock.Now(), 0)
			case machine.UpdateNode:
				in.Node.Node = a.Node
			case machine.SetNodeCondition:
				in.Node.Node.Status.Conditions = append(in.Node.Node.Status.Conditions, a.Condition)
			case machine.DrainNode: // package drain does it; here there are no pods
				in.Drain = in.Drain.After(a, drain.State{}, drain.Decision{Outcome: drain.Drained}, clock.Now())
				in.Attachments.Looked = true // and no volumes
			case machine.DeleteNode:
				in.Node.Node = nil
			default:
				panic("unknown action")
			}
		}
	}

	live()
	fmt.Println("-- the node joins")
	in.Node.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}
	in.Node.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	clock.Step(90 * time.Second)
	live()
	fmt.Println("-- the machine is deleted")
	in.Machine.DeletionTimestamp = &metav1.Time{Time: clock.Now()}
	live()
	// Output:
	// update machine: finalizer (New)
	// record phase "", Create Processing (NoVM: Creating machine on cloud provider)
	// look for the VM (LookFirst)
	// create the VM (NoVM)
	// update machine: provider ID simulated:///shoot/m-1/1 (VMKnown)
	// initialize the VM (VMUninitialized)
	// record phase "Pending", Create Processing (VMCreated: Creating machine on cloud provider)
	// nothing (WaitingForNode: the node has not joined yet); waits for node/m-1: WaitingForNode: the node has not joined yet
	// -- the node joins
	// update node: machine name (NodeOutOfSync)
	// record phase "Running", Create Successful (NodeReady: Machine m-1 successfully joined the cluster in 1m30s)
	// nothing (NodeReady)
	// -- the machine is deleted
	// set condition Terminating=True (ScaleDown) on node m-1 (Deleting)
	// record phase "Terminating", Delete Processing (Deleting: Set machine status to termination. Now, getting VM Status)
	// drain node m-1, by force from 2026-03-01T14:01:30Z (Draining)
	// delete the VM (Drained)
	// delete node m-1 (VMGone)
	// update machine: no finalizer (Released)
	// nothing (Released)
}

// A machine whose Node is not ready is given time to recover. What stands in
// the way, and until when, is part of the decision.
func ExampleDecide() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m-1", Finalizers: []string{v1alpha1.MCMFinalizerName}, Labels: map[string]string{v1alpha1.NodeLabelKey: "n-1"},
	}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	m.Spec.ProviderID = "simulated:///1"
	m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-4 * time.Minute))

	d := machine.Decide(machine.Observation{Machine: m, Node: machine.NodeView{Looked: true}}, machine.DefaultPolicy(), now)
	fmt.Println(d)
	fmt.Println("ask again in", d.NextCheck.Sub(now))

	d = machine.Decide(machine.Observation{Machine: m}, machine.DefaultPolicy(), now) // the Node was not read
	fmt.Println(d)
	// Output:
	// nothing (NodeGone: the node does not exist); waits for node/n-1: NodeGone: the node does not exist
	// ask again in 6m0s
	// nothing (NotObserved); waits for node/n-1: NotObserved
}

func ExampleDecideClass() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1"}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}

	d := machine.DecideClass(machine.ClassObservation{Class: class, Machines: []*v1alpha1.Machine{m}}, now)
	fmt.Println(d)
	class = d.Action.(machine.UpdateClass).Class

	fmt.Println(machine.DecideClass(machine.ClassObservation{Class: class}, now))
	fmt.Println(machine.DecideClass(machine.ClassObservation{Class: class, Complete: true}, now))
	// Output:
	// update class: finalizer (Referenced: machine/m-1)
	// nothing (NotObserved: the list of objects that may refer to it is incomplete); waits for machineclass/small: NotObserved: the list of objects that may refer to it is incomplete
	// update class: no finalizer (Released)
}

// What carries out [machine.CreateToken] creates the Secret in the cluster which
// the machine joins. [machine.CreateVM] then comes with the token, for the user
// data. Whatever prints it sees no more than its ID.
func ExampleNewBootstrapToken() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", UID: "5c0d"}}
	expires := time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC)
	random := bytes.NewReader(bytes.Repeat([]byte("not random at all"), 2)) // use crypto/rand.Reader

	secret, err := machine.NewBootstrapToken(m, expires, []string{"system:bootstrappers:workers"}, random)
	fmt.Println(secret.Namespace, secret.Name, secret.Labels, err)

	// Output:
	// kube-system bootstrap-token-nzxxii map[machine.sapcloud.io/machine-uid:5c0d] <nil>
}

func ExampleValidate() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}
	m.Spec.Class.Name = "small"
	for _, err := range machine.Validate(m) {
		fmt.Println("no VM:", err)
	}
	// Output:
	// no VM: spec.class.kind: Required value: Kind is required
}

// The Node speaks before the machine, also to stop.
func ExamplePreserveValue() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name:        "m-1",
		Labels:      map[string]string{v1alpha1.NodeLabelKey: "n-1"},
		Annotations: map[string]string{v1alpha1.PreserveMachineAnnotationKey: "now"},
	}}
	node := &corev1.Node{}
	fmt.Println(machine.PreserveValue(m, machine.NodeView{}))
	fmt.Println(machine.PreserveValue(m, machine.NodeView{Looked: true, Node: node}))
	node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: "false"}
	fmt.Println(machine.PreserveValue(m, machine.NodeView{Looked: true, Node: node}))
	// Output:
	// false
	// now true
	// false true
}

// What the labels of a Node call for, step by step.
func ExampleUpdateCondition() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	for _, label := range []string{
		v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate,
	} {
		node.Labels[label] = "true"
		c, due := machine.UpdateCondition(node, now)
		fmt.Println(due, c.Reason)
		node.Status.Conditions = []corev1.NodeCondition{c}
	}
	_, due := machine.UpdateCondition(node, now)
	fmt.Println(due)
	// Output:
	// true CandidateForUpdate
	// true SelectedForUpdate
	// false
}
