// SPDX-License-Identifier: Apache-2.0

// Package informers reads what drains need from the shared informers of a controller: see [New].
// [Informers.OnChange] names the Nodes whose drain may continue after an event.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		corev1 "k8s.io/api/core/v1"
//		"k8s.io/client-go/informers"
//
//		"github.com/machinist-dev/machinist/drain"
//		"github.com/machinist-dev/machinist/drain/draintest"
//		draininformers "github.com/machinist-dev/machinist/drain/runner/informers"
//	)
//
//	func main() {
//		cluster := draintest.New(draintest.Options{}) // use kubernetes.NewForConfig
//		node := &corev1.Node{}
//		node.Name = "node-1"
//		cluster.Add(node)
//		factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
//		reader, _ := draininformers.New(factory, drain.SourceBudgets, drain.SourceDaemonSets)
//		nodes := make(chan string)
//		reader.OnChange(func(node string) { nodes <- node })
//		ctx, cancel := context.WithCancel(context.Background())
//		defer cancel()
//		factory.Start(ctx.Done())
//		fmt.Println(<-nodes) // node-1
//	}
//
// A controller calls [runner.Observe] with the informers and then [runner.Executor.Pass] for each of these
// Nodes. Programs that drain one Node at a time use [runner.Executor.Run], which needs no informers and does
// not build this package.
package informers
