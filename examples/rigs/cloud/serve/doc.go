// SPDX-License-Identifier: Apache-2.0

// Serve runs a simulated cloud in a process of its own, so that VMs survive a restart of the
// controllers.
//
//	go run ./examples/rigs/cloud/serve --kubeconfig cluster.kubeconfig --boot 5s --join 2s
//
// It prints its URL for cloud.Dial and serves until it is interrupted. With a kubeconfig the
// VMs become hollow Nodes of that cluster, and a hollow scheduler binds pods to them. At the
// end all VMs are lost. The Nodes stay in the cluster.
package main
