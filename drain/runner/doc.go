// SPDX-License-Identifier: Apache-2.0

// Package runner drains Nodes as package drain decides: [Executor.Run] drains one Node and
// returns when the drain has ended, and [Executor.Pass] makes one pass for a controller. It
// reads the objects, cordons the Node, and evicts and deletes pods.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		corev1 "k8s.io/api/core/v1"
//
//		"github.com/machinist-dev/machinist/drain"
//		"github.com/machinist-dev/machinist/drain/draintest"
//		"github.com/machinist-dev/machinist/drain/runner"
//	)
//
//	func main() {
//		cluster := draintest.New(draintest.Options{}) // use kubernetes.NewForConfig
//		node := &corev1.Node{}
//		node.Name = "node-1"
//		cluster.Add(node)
//		decision, err := runner.Executor{Client: runner.NewClient(cluster.Client())}.Run(context.Background(), "node-1", drain.Policy{})
//		fmt.Println(decision.Outcome, err) // Drained <nil>
//	}
//
// Run refuses a drain that cannot end before it changes anything: see [ErrNotFeasible].
// [Executor.Uncordon] uncordons the Node.
//
// A controller calls [Observe] with its caches, then Pass, and keeps the [drain.State] that Pass returns.
// It calls both again when [Affected] names the Node, or at [drain.Decision.NextCheck], until
// [drain.Decision.Over] returns true. Package drain/runner/informers reads the shared informers of
// client-go.
//
// For a dry run, call Observe once with a [Client], and [drain.Decide].
package runner
