// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A program reconciles machines alone, without sets and without Nodes.
func ExampleExecutor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, machines := machinetest.New(draintest.Options{})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}, Data: map[string][]byte{"userData": []byte("#!/bin/sh")}}
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small", Finalizers: []string{v1alpha1.MCMFinalizerName}}}
	class.SecretRef = &corev1.SecretReference{Namespace: "shop", Name: "small"}
	class.Provider, class.ProviderSpec = "simulated", apiruntime.RawExtension{Raw: []byte(`{}`)}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "worker-1"}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	if err := cluster.Add(secret, class, m); err != nil {
		fmt.Println(err)
		return
	}
	factories := runner.Factories{
		Machines: externalversions.NewSharedInformerFactory(machines, 0), NoSets: true, Control: informers.NewSharedInformerFactory(cluster.Client(), 0),
	}
	reader, err := runner.NewInformers(factories)
	if err != nil {
		fmt.Println(err)
		return
	}
	changed := make(chan types.NamespacedName, 1000)
	if err := reader.OnChange(func(machine types.NamespacedName, _ time.Duration) { changed <- machine }); err != nil {
		fmt.Println(err)
		return
	}
	factories.Machines.Start(ctx.Done())
	factories.Control.Start(ctx.Done())
	factories.Machines.WaitForCacheSync(ctx.Done())
	factories.Control.WaitForCacheSync(ctx.Done())
	executor := &runner.Executor{
		Reader: reader, Requests: client.New(machines, nil), Policy: machine.DefaultPolicy(), Driver: drivertest.NewCloud(drivertest.CloudOptions{}),
	}
	executor.Decided = func(key types.NamespacedName, m *v1alpha1.Machine, _ machine.Decision, _ error) {
		if m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable {
			fmt.Println(key, "has a VM")
			cancel()
		}
	}
	for ctx.Err() == nil {
		if _, err := executor.Reconcile(ctx, <-changed); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output: shop/worker-1 has a VM
}
