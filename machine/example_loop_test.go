// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// controller has one machine and its Node in memory, instead of an API server.
type controller struct {
	clock *clocktesting.FakeClock
	cloud *drivertest.Cloud
	seen  machine.Observation
}

// newController returns a controller with a new machine of a class of a simulated cloud.
func newController() *controller {
	c := &controller{clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	c.cloud = drivertest.NewCloud(drivertest.CloudOptions{Clock: c.clock})
	class := c.cloud.MachineClass("shop", "small")
	class.Finalizers = []string{v1alpha1.MCMFinalizerName}
	c.seen = machine.Observation{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m-1", CreationTimestamp: metav1.NewTime(c.clock.Now())},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}},
		},
		Class:      machine.ClassView{Looked: true, Class: class},
		Node:       machine.NodeView{Looked: true},
		ProviderID: machine.ProviderIDView{Compared: true},
	}
	return c
}

// reconcile decides and carries out actions until a decision has none.
func (c *controller) reconcile(ctx context.Context) {
	for {
		d := machine.Decide(c.seen, machine.DefaultPolicy(), c.clock.Now())
		fmt.Println(d)
		if d.Action == nil {
			return // until d.NextCheck, or until an object changes
		}
		if err := c.apply(ctx, d.Action); err != nil {
			fmt.Println(err)
			return
		}
	}
}

// apply carries out an action and observes its result.
func (c *controller) apply(ctx context.Context, action machinist.Action) error {
	seen, now := &c.seen, c.clock.Now()
	switch a := action.(type) {
	case machinist.Update:
		switch o := a.Object.(type) {
		case *v1alpha1.Machine:
			seen.Machine = o
		case *corev1.Node:
			seen.Node.Node = o
		}
	case machine.CallDriver:
		result, err := machine.Call(ctx, c.cloud, a, seen.Machine, seen.Class.Class, c.cloud.Secret("shop", "small"))
		if err != nil {
			return err
		}
		seen.VM = seen.VM.After(result, now, 0)
	case machine.DrainNode: // use package drain/runner; this Node has no pods and no volumes
		seen.Drain = seen.Drain.After(a, drain.State{}, drain.Decision{Outcome: drain.Drained}, now)
		seen.Attachments.Looked = true
	case machinist.Delete:
		seen.Node.Node = nil
	default:
		return fmt.Errorf("unknown action: %v", a)
	}
	return nil
}

// A controller creates a machine, sees its Node join, and deletes the machine.
func Example() {
	ctx, c := context.Background(), newController()
	c.reconcile(ctx)

	fmt.Println("-- the node joins")
	c.clock.Step(90 * time.Second)
	c.seen.Node.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}
	c.seen.Node.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.reconcile(ctx)

	fmt.Println("-- the machine is deleted")
	c.seen.Machine.DeletionTimestamp = &metav1.Time{Time: c.clock.Now()}
	c.reconcile(ctx)
	// Output:
	// update machine m-1: finalizer (New)
	// look for the VM (LookFirst)
	// update status of machine m-1: phase "", Create Processing (NoVM: Creating machine on cloud provider)
	// create the VM (NoVM)
	// update machine m-1: provider ID simulated:///shop/m-1/1 (VMKnown)
	// initialize the VM (VMUninitialized)
	// update status of machine m-1: phase "Pending", Create Processing (VMCreated: Creating machine on cloud provider)
	// nothing (WaitingForNode: the node has not joined yet); waits for node/m-1: WaitingForNode: the node has not joined yet
	// -- the node joins
	// update node m-1: machine name (NodeOutOfSync)
	// update status of machine m-1: phase "Running", Create Successful (NodeReady: Machine m-1 successfully joined the cluster in 1m30s)
	// nothing (NodeReady)
	// -- the machine is deleted
	// update status of node m-1: condition Terminating=True (ScaleDown) (Deleting)
	// update status of machine m-1: phase "Terminating", Delete Processing (Deleting: Set machine status to termination. Now, getting VM Status)
	// drain node m-1, by force from 2026-03-01T14:01:30Z (Draining)
	// delete the VM (Drained)
	// delete node m-1 (VMGone)
	// update machine m-1: no finalizer (Released)
	// nothing (Released)
}
