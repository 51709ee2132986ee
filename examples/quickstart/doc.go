// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows the whole way of machines, with nothing but itself:
// two API servers in memory, a simulated cloud, hollow Nodes, and the
// controllers of this repository.
//
// It applies manifests (its own, or those of -f), brings the machines to
// Running, rolls them to a new class, scales them up, deletes everything, checks
// from the histories of the clusters and of the cloud that no bound was ever
// broken, and says what the cloud still holds.
//
// With its own manifests it also tells of machines that fail, whose timeouts it
// makes short for that: one never joins and is replaced, two whose Nodes fall
// silent together are replaced one after the other, one that has failed is kept
// for as long as somebody asks. What it says of these after a chapter, in the
// lines that begin with --, is taken from the history of the cluster, and the
// demo fails if it did not happen.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -v -faults -replicas 10
//	go run ./examples/quickstart -f machines.yaml
//
// Exit status 0 means that everything went as it should, 1 that something did
// not, 2 that the flags or the manifests are wrong.
package main
