// SPDX-License-Identifier: Apache-2.0

// Package hollow plays what machines become, without any machine: Nodes that
// join when their VM is up and run the pods bound to them ([Nodes]), and a
// workload that keeps a number of pods on them ([Workload]).
//
// Both go through a client like anybody else, look at the whole picture at
// every step, and repeat at the next what failed at this one:
//
//	nodes := &hollow.Nodes{Client: target, Clock: clock, VMs: cloudVMs}
//	for {
//		nodes.Step(ctx)
//		… // wait a little
//	}
package hollow
