// SPDX-License-Identifier: Apache-2.0

// Package runner carries out what package drain decides: it reads a Node and its pods, cordons
// the Node, and evicts and deletes pods.
//
// A tool that wants a drain and nothing else calls [Executor.Run], which watches the Node and
// returns when the drain is over or its context is:
//
//	decision, err := runner.Executor{Client: client}.Run(ctx, "node-1", drain.Policy{})
//
// Run refuses a drain that cannot end before it changes anything: see [ErrNotFeasible] and
// [ErrNodeNotFound].
//
// Controllers have informers and a queue, and no goroutine to spare for waiting. They call
// [Observe] with [Informers], and [Executor.Pass], which makes one pass:
//
//	observation, err := runner.Observe(ctx, informers, "node-1", policy, state)
//	state, decision, err := executor.Pass(ctx, state, observation, policy, "node-1")
//	if decision.Over() {
//		… // decision.Outcome says how it ended
//	}
//	… // report decision.Holds(); come back when OnChange says so, or at decision.NextCheck
//
// A dry run reads the API server once, with [Live], and calls [drain.Decide].
package runner
