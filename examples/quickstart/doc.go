// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows the lifecycle of machines in one process: two API servers in
// memory, a simulated cloud, simulated Nodes, and the controllers of this repository.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -v -faults -replicas 10
//	go run ./examples/quickstart -f machines.yaml
//
// It applies manifests (its own, or those of -f) and waits until the machines are
// Running. Then it rolls them to a new class, scales them up, and deletes everything.
// At the end it checks the histories of the clusters and of the cloud: no bound may have
// been violated at any time, and the cloud must be empty.
//
// With its own manifests it also makes machines fail, with short timeouts. One machine
// never joins and is replaced. Two machines whose Nodes become silent together are
// replaced one after the other. One failed machine is preserved until a user releases
// it. Lines that begin with -- are read from the history of the cluster. The demo fails
// if the history does not contain what they say.
//
// The clock of the demo is faster than real time, and stands still while the program works, so that
// the load of the computer changes only how long the demo takes.
//
// Exit status 0 means success, 1 a failed check, 2 invalid flags or manifests.
package main
