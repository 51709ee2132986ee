// SPDX-License-Identifier: Apache-2.0

// Package runner carries out the decisions of package safety: [Executor.Reconcile] deletes VMs without a
// machine, freezes sets that create too many machines, and marks Nodes without a machine. [Prober] finds out
// whether the API servers answer, and [Guard] holds the replacement of many machines.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"time"
//
//		"k8s.io/client-go/informers"
//		"k8s.io/client-go/kubernetes"
//		"k8s.io/client-go/rest"
//
//		"github.com/machinist-dev/machinist"
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/machine/client"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
//		"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
//		machinerunner "github.com/machinist-dev/machinist/machine/runner"
//		"github.com/machinist-dev/machinist/safety"
//		"github.com/machinist-dev/machinist/safety/runner"
//	)
//
//	// It deletes the VMs without a machine, and nothing else.
//	func main() {
//		config := &rest.Config{Host: "http://127.0.0.1:8001"} // kubectl proxy
//		ctx, machines, secrets := context.Background(), versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
//		factories := machinerunner.Factories{
//			Machines: externalversions.NewSharedInformerFactory(machines, 0), NoSets: true,
//			Control: informers.NewSharedInformerFactory(secrets, 0),
//		}
//		reader, err := runner.NewInformers(factories)
//		if err != nil {
//			panic(err)
//		}
//		factories.Machines.Start(ctx.Done())
//		factories.Control.Start(ctx.Done())
//		factories.Machines.WaitForCacheSync(ctx.Done())
//		factories.Control.WaitForCacheSync(ctx.Done())
//		cloud := drivertest.NewCloud(drivertest.CloudOptions{}) // use your driver
//		cloud.AddVM(drivertest.VM{Namespace: "shop", Machine: "lost", Class: "small"})
//		executor := &runner.Executor{
//			Reader: reader, Requests: client.New(machines, nil), Driver: cloud, Policy: safety.DefaultPolicy(),
//			Decided: func(_ runner.Concern, d safety.Decision[machinist.Action]) { fmt.Println(d) },
//		}
//		for {
//			next, err := executor.Reconcile(ctx, runner.Orphans)
//			if err != nil || next.IsZero() {
//				fmt.Println(err)
//				next = time.Now().Add(time.Minute)
//			}
//			time.Sleep(max(time.Second, time.Until(next)))
//		}
//	}
//
// A program with a work queue also reconciles the concerns that [Informers.OnChange] names. One over other
// caches has a [machinist.Reader] of its own, with the indexes of package machine/runner, and asks
// [Executor.Changed].
package runner
