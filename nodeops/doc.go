// SPDX-License-Identifier: Apache-2.0

// Package nodeops decides what a Node looks like with a taint, a condition or a [Cordon], and which
// machine it belongs to. [SyncTemplate] keeps the template of its machine on it, and an [Index] finds
// the machine. [Cordon.Set] keeps pods off a Node, and [Uncordon] opens it again:
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		corev1 "k8s.io/api/core/v1"
//
//		"github.com/machinist-dev/machinist/nodeops"
//	)
//
//	func main() {
//		node := &corev1.Node{}
//		node, _, _ = nodeops.Cordon{Owner: "os-update", Reason: "kernel 7.1"}.Set(node, time.Now())
//		fmt.Println(node.Spec.Unschedulable)
//		node, _ = nodeops.Uncordon(node, "os-update")
//		fmt.Println(node.Spec.Unschedulable)
//	}
//
// The functions return a copy and whether it differs, so that a controller writes only if there is
// something to write. They do not change their arguments. Package nodeops/runner stores the results
// in a cluster.
//
// # Cordons
//
// A [Cordon] keeps pods off a Node by spec.unschedulable or by a taint of its owner. It can also
// exclude the Node from load balancers, or declare it out of service. Each owner has a claim in
// an annotation. [Uncordon] opens the Node when the last owner leaves, and only if a cordon had
// closed it. [Cordons] lists the owners.
//
// # Templates
//
// [SyncTemplate] keeps labels, annotations and taints on a Node, and [SyncCapacity] virtual
// capacity. Both compare what is desired, what was applied before and what is on the Node, and
// remove only what was applied before. An annotation of the Node records it.
//
// # The machine of a Node
//
// An [Index] finds the machine by the Node name that the machine recorded, or by provider ID.
// [NormalizeProviderID] says when two provider IDs are equal. Contradictions are returned with
// the names of the machines.
package nodeops
