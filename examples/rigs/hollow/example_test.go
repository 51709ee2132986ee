// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// A test in memory takes one step at a time.
func ExampleNodes_Step() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, clock := context.Background(), clocktesting.NewFakeClock(start)
	cluster := draintest.New(draintest.Options{Clock: clock})
	client := cluster.Client()
	workload := &hollow.Workload{Client: client, Namespace: "default", Name: "web", Replicas: 4}
	replicas, scheduler := &hollow.Replicas{Client: client}, &hollow.Scheduler{Client: client}
	nodes := &hollow.Nodes{Client: client, Clock: clock, VMs: func() []hollow.VM {
		return []hollow.VM{{ProviderID: "vm-1", NodeName: "node-1", UpSince: start}, {ProviderID: "vm-2", NodeName: "node-2", UpSince: start}}
	}}
	for range 3 {
		clock.Step(time.Second)
		for _, step := range []func(context.Context) error{workload.Step, replicas.Step, scheduler.Step, nodes.Step} {
			if err := step(ctx); err != nil {
				fmt.Println(err)
			}
		}
	}
	for _, node := range []string{"node-1", "node-2"} {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		fmt.Println(node, len(pods.Items), pods.Items[0].Status.Phase, err)
	}
	// Output:
	// node-1 2 Running <nil>
	// node-2 2 Running <nil>
}

// Two Nodes join, and one stops its heartbeats.
func ExampleLifecycle() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, clock := context.Background(), clocktesting.NewFakeClock(start)
	client := draintest.New(draintest.Options{Clock: clock}).Client()
	nodes := &hollow.Nodes{Client: client, Clock: clock, VMs: func() []hollow.VM {
		return []hollow.VM{{ProviderID: "vm-1", NodeName: "node-1", UpSince: start}, {ProviderID: "vm-2", NodeName: "node-2", UpSince: start}}
	}}
	lifecycle := &hollow.Lifecycle{Client: client, Clock: clock, Grace: 40 * time.Second}
	for second := range 60 {
		if second == 10 {
			nodes.Silence("node-2", true)
		}
		clock.Step(time.Second)
		if err := errors.Join(nodes.Step(ctx), lifecycle.Step(ctx)); err != nil {
			fmt.Println(err)
		}
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				fmt.Println(n.Name, c.Type, c.Status, c.Reason)
			}
		}
	}
	// Output:
	// node-1 Ready True KubeletReady
	// node-2 Ready Unknown NodeStatusUnknown
}

// Nodes run by themselves on a real API server, or on one in memory as here.
func ExampleNodes_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	client := draintest.New(draintest.Options{}).Client()
	up := time.Now()
	nodes := &hollow.Nodes{Client: client, VMs: func() []hollow.VM {
		return []hollow.VM{{ProviderID: "vm-1", NodeName: "node-1", UpSince: up}}
	}}
	watch, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
	}
	ended := make(chan error)
	go func() { ended <- nodes.Run(ctx) }()
	event := <-watch.ResultChan()
	watch.Stop()
	cancel()
	fmt.Println("ended:", <-ended)
	if node, ok := event.Object.(*corev1.Node); ok {
		for _, c := range node.Status.Conditions {
			fmt.Println(c.Type, c.Status, c.Reason)
		}
	}
	// Output:
	// ended: <nil>
	// NetworkUnavailable False RouteCreated
	// MemoryPressure False KubeletHasSufficientMemory
	// DiskPressure False KubeletHasNoDiskPressure
	// PIDPressure False KubeletHasSufficientPID
	// Ready True KubeletReady
}
