// SPDX-License-Identifier: Apache-2.0

// Package drain decides how the pods of a Node are evicted: which are evicted or deleted now,
// which stay, what the drain waits for, and how it escalates. [Step] returns a [Decision] from
// a [State], an [Observation] and a [Policy]; [Decide] is the first step, a dry run. Package
// drain/runner reads the objects and sends the requests: Executor.Run drains a Node.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		corev1 "k8s.io/api/core/v1"
//
//		"github.com/machinist-dev/machinist/drain"
//	)
//
//	func main() {
//		node, pod := &corev1.Node{}, &corev1.Pod{} // read them from the API server
//		node.Name = "node-1"
//		pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "shop", "web-1", "1", "node-1"
//		in := drain.Observation{Node: node, Looked: true, Pods: drain.All(pod)}
//		decision := drain.Decide(in, drain.Policy{EvictUnmanaged: true}, time.Now())
//		for _, row := range decision.Rows {
//			fmt.Println(row) // evict shop/web-1 (Evictable)
//		}
//	}
//
// With the zero Policy the Node is cordoned, and pods keep their own grace periods.
// PodDisruptionBudgets are always respected. Pods that no controller would recreate or
// that would lose local data stay. A [Ladder] is when and how the drain escalates. A
// [VolumePolicy] is what it waits for after the pods.
//
// Only the Node and its pods are required. Lists that are missing are in
// [Decision.NotEvaluated]. Each pod has a [Row] with what is done and why, since when, and what
// comes next. Every request has the UID of the pod as precondition. An accepted eviction is not
// the end of a pod: the outcome is [Drained] only when all pods are gone and the Node is
// cordoned.
//
// The page docs/drain.md describes policies, escalation and the command.
package drain
