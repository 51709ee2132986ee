// SPDX-License-Identifier: Apache-2.0

// Package runner carries out the decisions of package deployment: [Executor.Reconcile] observes one
// deployment, decides, writes its sets, machines and Nodes, and stores its status. [Informers] read the
// objects. [Observe] and [deployment.Decide] tell why a rollout waits:
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
//		"github.com/machinist-dev/machinist/deployment"
//		"github.com/machinist-dev/machinist/deployment/runner"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
//		"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		d := &v1alpha1.MachineDeployment{}
//		d.Namespace, d.Name, d.UID = "shop", "workers", "1"
//		ctx, machines := context.Background(), fake.NewClientset(d) // use versioned.NewForConfig
//		factory := externalversions.NewSharedInformerFactory(machines, 0)
//		reader, err := runner.NewInformers(factory, nil) // or with a factory for the Nodes
//		if err != nil {
//			panic(err)
//		}
//		factory.Start(ctx.Done())
//		factory.WaitForCacheSync(ctx.Done())
//		in, err := runner.Observe(ctx, reader, types.NamespacedName{Namespace: "shop", Name: "workers"})
//		if err != nil {
//			panic(err)
//		}
//		in.Proven = true // the lists are new
//		decision := deployment.Decide(in, deployment.Policy{}, time.Now())
//		fmt.Println(decision)
//		for _, hold := range decision.Holds {
//			fmt.Println(hold) // what the rollout waits for
//		}
//	}
//
// A controller calls Reconcile for each deployment that [Informers.OnChange] names, and at the time that
// Reconcile returns. A controller over other caches has a [Reader] of its own, and asks [Affected] which
// deployments a change concerns.
package runner
