// SPDX-License-Identifier: Apache-2.0

// Serve is a simulated cloud of its own: a program that other programs make VMs
// on, and that lives on when they are killed.
//
//	go run ./examples/cloud/serve --kubeconfig cluster.kubeconfig --boot 5s --join 2s
//
// It prints its URL, which is for cloud.Dial, and serves until it is interrupted.
// With a kubeconfig the VMs become hollow Nodes of that cluster, and a hollow
// scheduler binds pods to them. It forgets everything when it ends; the Nodes
// stay in the cluster as they were.
package main
