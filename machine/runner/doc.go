// SPDX-License-Identifier: Apache-2.0

// Package runner carries out the decisions of package machine: [Executor.Reconcile] observes one machine,
// decides, and acts, until nothing is left to do now: it calls the driver, writes the machine and its
// Node, and drains the Node. [Informers] read the objects, and [Finalizers] keep the classes and Secrets
// that machines need.
//
//	package main
//
//	import (
//		"context"
//		"time"
//
//		"k8s.io/apimachinery/pkg/types"
//		"k8s.io/client-go/informers"
//		"k8s.io/client-go/kubernetes"
//		"k8s.io/client-go/rest"
//		"k8s.io/client-go/util/workqueue"
//
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/machine"
//		"github.com/machinist-dev/machinist/machine/client"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
//		"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
//		"github.com/machinist-dev/machinist/machine/runner"
//	)
//
//	// It reconciles the machines of a cluster that serves no MachineSets, without Nodes.
//	func main() {
//		config := &rest.Config{Host: "http://127.0.0.1:8001"} // kubectl proxy
//		ctx, machines, secrets := context.Background(), versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
//		factories := runner.Factories{
//			Machines: externalversions.NewSharedInformerFactory(machines, 0), NoSets: true,
//			Control: informers.NewSharedInformerFactory(secrets, 0),
//		}
//		reader, err := runner.NewInformers(factories)
//		if err != nil {
//			panic(err)
//		}
//		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
//		_ = reader.OnChange(queue.AddAfter)
//		factories.Machines.Start(ctx.Done())
//		factories.Control.Start(ctx.Done())
//		factories.Machines.WaitForCacheSync(ctx.Done())
//		factories.Control.WaitForCacheSync(ctx.Done())
//		executor := &runner.Executor{
//			Reader: reader, Requests: client.New(machines, nil), Policy: machine.DefaultPolicy(),
//			Driver: drivertest.NewCloud(drivertest.CloudOptions{}), // use your driver
//		}
//		for {
//			key, _ := queue.Get()
//			next, err := executor.Reconcile(ctx, key)
//			if err != nil {
//				queue.AddRateLimited(key)
//			} else if queue.Forget(key); !next.IsZero() {
//				queue.AddAfter(key, max(time.Second, time.Until(next)))
//			}
//			queue.Done(key)
//		}
//	}
//
// A class is needed until no machine refers to it: such a program also reconciles the classes and Secrets,
// with [Finalizers.ReconcileClass] and [Finalizers.ReconcileSecret]. A controller over other caches has a
// [machinist.Reader] of its own with the [Indexes], and asks [Affected] which machines a change concerns.
package runner
