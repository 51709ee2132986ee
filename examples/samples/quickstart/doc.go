// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows what the controllers of this repository do with machines, in one process and in
// memory: two API servers, a simulated cloud, simulated Nodes with pods, and the controllers.
//
//	go run ./examples/samples/quickstart                     # a tree that changes, at a terminal; a log elsewhere
//	go run ./examples/samples/quickstart -v                  # also each decision with actions, and its reason
//	go run ./examples/samples/quickstart -faults -seed 2     # the cloud and the API servers fail at random
//
// It creates machines, rolls them to a new class, drains a Node whose pods have a PodDisruptionBudget,
// repairs Nodes that become silent, and deletes everything. Then it checks the histories of the clusters
// and of the cloud: no bound may have been violated at any time, and the cloud must be empty.
//
// The clock of the demo is faster than real time, and stands still while the program works, so that
// the load of the computer changes only how long the demo takes.
//
// Exit status 0 means success, 1 a failed check, 2 invalid flags.
package main
