// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A machine without a healthy Node may recover until its health timeout ends. The decision has a
// hold that says why, and the time of the next decision.
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
	fmt.Println("next check in", d.NextCheck.Sub(now))

	d = machine.Decide(machine.Observation{Machine: m}, machine.DefaultPolicy(), now) // the Node was not read
	fmt.Println(d)
	// Output:
	// nothing (NodeGone: the node does not exist); waits for node/n-1: NodeGone: the node does not exist
	// next check in 6m0s
	// nothing (NotObserved); waits for node/n-1: NotObserved
}

// A class has a finalizer while a machine refers to it.
func ExampleDecideClass() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1"}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}

	d := machine.DecideClass(machine.ClassObservation{Class: class, Users: []metav1.Object{m}}, now)
	fmt.Println(d)
	class = d.Action.(machinist.Update).Object.(*v1alpha1.MachineClass)

	fmt.Println(machine.DecideClass(machine.ClassObservation{Class: class}, now))
	fmt.Println(machine.DecideClass(machine.ClassObservation{Class: class, Complete: true}, now))
	// Output:
	// update machineclass small: finalizer (Referenced: machine/m-1)
	// nothing (NotObserved: the list of objects that may refer to it is incomplete); waits for machineclass/small: NotObserved: the list of objects that may refer to it is incomplete
	// update machineclass small: no finalizer (Released)
}

// For [machine.CreateToken] a controller creates this Secret in the target cluster. The next
// [machine.CallDriver] has the token for the user data. Printing a token shows only its ID.
func ExampleNewBootstrapToken() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", UID: "5c0d"}}
	expires := time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC)
	random := bytes.NewReader(bytes.Repeat([]byte("not random at all"), 2)) // use crypto/rand.Reader

	secret, err := machine.NewBootstrapToken(m, expires, []string{"system:bootstrappers:workers"}, random)
	fmt.Println(secret.Namespace, secret.Name, secret.Labels, err)

	// Output:
	// kube-system bootstrap-token-nzxxii map[machine.sapcloud.io/machine-uid:5c0d] <nil>
}

// No VM is created for an invalid machine.
func ExampleValidate() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}
	m.Spec.Class.Name = "small"
	for _, err := range machine.Validate(m) {
		fmt.Println(err)
	}
	// Output:
	// spec.class.kind: Required value: Kind is required
}
