// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/machinetest"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
	"github.com/machinist-dev/machinist/safety/runner"
)

// A program deletes a VM that has no machine. The machine "worker-1" has the other VM.
func ExampleExecutor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, machines := machinetest.New(draintest.Options{})
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clock})
	cloud.AddVM(drivertest.VM{Namespace: "shop", Machine: "lost", Class: "small"})
	kept := cloud.AddVM(drivertest.VM{Namespace: "shop", Machine: "worker-1", Class: "small"})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}, Data: map[string][]byte{"userData": []byte("#!/bin/sh")}}
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}}
	class.SecretRef = &corev1.SecretReference{Namespace: "shop", Name: "small"}
	class.Provider, class.ProviderSpec = "simulated", apiruntime.RawExtension{Raw: []byte(`{}`)}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "worker-1"}}
	m.Spec.ProviderID = kept.ProviderID
	if err := cluster.Add(secret, class, m); err != nil {
		fmt.Println(err)
		return
	}
	factories := machinerunner.Factories{
		Machines: externalversions.NewSharedInformerFactory(machines, 0), NoSets: true, Control: informers.NewSharedInformerFactory(cluster.Client(), 0),
	}
	reader, err := runner.NewInformers(factories)
	if err != nil {
		fmt.Println(err)
		return
	}
	factories.Machines.Start(ctx.Done())
	factories.Control.Start(ctx.Done())
	factories.Machines.WaitForCacheSync(ctx.Done())
	factories.Control.WaitForCacheSync(ctx.Done())
	executor := &runner.Executor{
		Reader: reader, Requests: client.New(machines, nil), Driver: cloud, Clock: clock,
		Policy: safety.Policy{Grace: 10 * time.Minute, Period: 15 * time.Minute, MaxDeletions: 1, MaxPercent: 50},
		Decided: func(_ runner.Concern, d safety.Decision[machinist.Action]) {
			for _, h := range d.Holds {
				fmt.Println(clock.Now().Format(time.TimeOnly), h.Subject, h.Reason)
			}
			for _, a := range d.Actions {
				if vm, ok := a.(safety.DeleteVM); ok {
					fmt.Println(clock.Now().Format(time.TimeOnly), "delete the VM of", vm.MachineName)
				}
			}
		},
	}
	for len(cloud.Snapshot().VMs) > 1 {
		next, err := executor.Reconcile(ctx, runner.Orphans)
		if err != nil || next.IsZero() {
			fmt.Println(err)
			return
		}
		clock.SetTime(next)
	}
	// Output:
	// 12:00:00 vm/simulated:///shop/lost/1 WaitingForGrace
	// 12:10:00 delete the VM of lost
}
