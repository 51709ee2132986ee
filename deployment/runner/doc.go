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
//		"os"
//		"time"
//
//		"k8s.io/apimachinery/pkg/types"
//		"k8s.io/client-go/informers"
//		"k8s.io/client-go/kubernetes"
//		"k8s.io/client-go/rest"
//
//		"github.com/machinist-dev/machinist/deployment"
//		"github.com/machinist-dev/machinist/deployment/runner"
//		"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
//		"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
//	)
//
//	// Its arguments are the namespace and the name of a MachineDeployment. It only reads.
//	func main() {
//		config := &rest.Config{Host: "http://127.0.0.1:8001"} // kubectl proxy
//		ctx, namespace := context.Background(), os.Args[1]
//		machines := externalversions.NewSharedInformerFactoryWithOptions(versioned.NewForConfigOrDie(config), 0, externalversions.WithNamespace(namespace))
//		nodes := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
//		reader, err := runner.NewInformers(machines, nodes)
//		if err != nil {
//			panic(err)
//		}
//		machines.Start(ctx.Done())
//		nodes.Start(ctx.Done())
//		machines.WaitForCacheSync(ctx.Done())
//		nodes.WaitForCacheSync(ctx.Done())
//		in, err := runner.Observe(ctx, reader, types.NamespacedName{Namespace: namespace, Name: os.Args[2]})
//		if err != nil {
//			panic(err)
//		}
//		in.Proven = true // the lists are new
//		d := deployment.Decide(in, deployment.Policy{}, time.Now())
//		fmt.Println(d.Reason, "-", d.Message)
//		for _, hold := range d.Holds {
//			fmt.Println("waits for", hold)
//		}
//	}
//
// A controller calls Reconcile for each deployment that [Informers.OnChange] names, and at the time that
// Reconcile returns. A controller over other caches has a [machinist.Reader] of its own, with the indexes
// of package machine/runner, and asks [Affected] which deployments a change concerns.
package runner
