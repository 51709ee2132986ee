// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/permits"
	"github.com/machinist-dev/machinist/permits/runner"
)

// daemon reboots the Node on which it runs.
type daemon struct {
	client kubernetes.Interface
	lock   *runner.Lock
	reboot bool // whether the Node has to be rebooted
}

// pass makes one pass. A program repeats it, every minute and after its start.
func (d *daemon) pass(ctx context.Context) error {
	node, executor := d.lock.Holder, drainrunner.Executor{Client: drainrunner.NewClient(d.client)}
	policy := drain.Policy{Cordon: nodeops.Cordon{Owner: "reboot"}}
	if !d.reboot { // not, or not anymore
		if err := executor.Uncordon(ctx, node, policy.Cordon.Owner); err != nil {
			return err
		}
		return d.lock.Release(ctx)
	}
	return d.lock.Run(ctx, func(ctx context.Context) error {
		if _, err := executor.Run(ctx, node, policy); err != nil {
			return err
		}
		fmt.Println(node, "is drained and reboots")
		d.reboot = false
		return nil // the process ends here, and the permit lasts
	})
}

// A daemon runs on each Node and reboots one Node at a time, at night.
func ExampleLock() {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 21, 30, 0, 0, time.UTC))
	client := draintest.New(draintest.Options{}).Client() // a fake clientset
	daemons := map[string]*daemon{}
	for _, name := range []string{"node-1", "node-2"} {
		_, err := client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			fmt.Println(err)
		}
		daemons[name] = &daemon{client: client, reboot: true, lock: &runner.Lock{
			Leases: client.CoordinationV1().Leases("kube-system"), Name: "reboot", Holder: name, Clock: clock,
			Policy: permits.Policy{Limit: 1, TTL: 20 * time.Minute, Window: permits.Window{Start: 22 * time.Hour, Length: 6 * time.Hour}},
		}}
	}
	pass := func(name string) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		daemons[name].lock.Waiting = func(error) { cancel() } // a program waits
		err := daemons[name].pass(ctx)
		var refusal runner.RefusedError
		switch {
		case errors.As(err, &refusal):
			fmt.Println(refusal)
		case errors.Is(err, runner.ErrLost):
			fmt.Println("the drain has stopped, and continues with the next permit:", err)
		case err != nil:
			fmt.Println(err)
		}
	}

	pass("node-1") // creates the object
	clock.Step(21 * time.Minute)
	pass("node-1")
	clock.Step(10 * time.Minute)
	pass("node-1")
	pass("node-2")
	clock.Step(5 * time.Minute) // the Node is back
	pass("node-1")
	pass("node-2")
	lease, err := client.CoordinationV1().Leases("kube-system").Get(context.Background(), "reboot", metav1.GetOptions{})
	fmt.Println(*lease.Spec.HolderIdentity, err)
	// Output:
	// no permit for "node-1" under "reboot": the ledger is new or was restored, and may lack holders until 2026-01-01T21:50:11Z
	// no permit for "node-1" under "reboot": the window opens at 2026-01-01T22:00:00Z
	// node-1 is drained and reboots
	// no permit for "node-2" under "reboot": 1 held, limit 1 ("node-1" until 2026-01-01T22:21:00Z); ask again at 2026-01-01T22:21:00Z
	// node-2 is drained and reboots
	// "node-2" until 2026-01-01T22:26:00Z <nil>
}
