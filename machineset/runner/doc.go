// SPDX-License-Identifier: Apache-2.0

// Package runner carries out the decisions of package machineset: [Executor.Reconcile] observes one set,
// decides, creates and deletes machines, and writes the status of the set. [Informers] read the objects.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"time"
//
//		"k8s.io/apimachinery/pkg/types"
//
//		"github.com/machinist-dev/machinist/machine/client"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
//		"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//		"github.com/machinist-dev/machinist/machineset/runner"
//	)
//
//	func main() {
//		set := &v1alpha1.MachineSet{}
//		set.Namespace, set.Name, set.UID = "shop", "workers", "1"
//		ctx, machines := context.Background(), fake.NewClientset(set) // use versioned.NewForConfig
//		factory := externalversions.NewSharedInformerFactory(machines, 0)
//		informers, err := runner.NewInformers(factory, nil)
//		if err != nil {
//			panic(err)
//		}
//		changed := make(chan types.NamespacedName, 100) // use a work queue
//		_ = informers.OnChange(func(set types.NamespacedName, after time.Duration) { changed <- set })
//		factory.Start(ctx.Done())
//		factory.WaitForCacheSync(ctx.Done())
//		executor := &runner.Executor{Reader: informers, Requests: client.New(machines, nil)}
//		key := <-changed
//		next, err := executor.Reconcile(ctx, key)
//		fmt.Println(key, next, err) // make the next pass at that time, or when the set is changed again
//	}
//
// A report or a dry run calls [Observe] and [machineset.Decide]. A controller over other caches has a
// [machinist.Reader] of its own, with the indexes of package machine/runner, and asks [Affected] which sets
// a change concerns.
package runner
