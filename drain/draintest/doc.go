// SPDX-License-Identifier: Apache-2.0

// Package draintest is a Kubernetes API server in memory for tests: [New] returns a [Cluster] with
// the controllers on which a drain depends, [Cluster.Client] its clientset, [Cluster.Inject] makes
// requests fail, and [Cluster.History] has every write.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//
//		corev1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/machinist-dev/machinist/drain/draintest"
//	)
//
//	func main() {
//		cluster := draintest.New(draintest.Options{})
//		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
//		pod.Spec.NodeName = "node-1"
//		if err := cluster.Add(pod); err != nil {
//			panic(err)
//		}
//		pods := cluster.Client().CoreV1().Pods("shop")
//		fmt.Println(pods.Delete(context.Background(), "web", metav1.DeleteOptions{}))
//		fmt.Println(len(cluster.History()), "writes")
//	}
//
// It is built on the fake clientsets of client-go and adds the rules that they leave out: optimistic locking, UIDs,
// generations, status subresources, finalizers, grace periods, owner references, selectors, watches that begin in the
// past, and evictions under PodDisruptionBudgets. [Cluster.Attach] adds clientsets of custom kinds. With a fake Clock in the
// options, [Cluster.Tick] ends what is due and returns the next time.
//
// # What is like the real thing
//
//   - One counter numbers all writes. A stale resource version is a conflict (409), one that is no number an internal
//     error (500). An update without one, or with 0, is refused for custom kinds and a few built-in ones (422) and
//     unconditional for the rest. The uid of an update is a precondition: another incarnation is a conflict, in a patch it
//     is invalid (422). What is gone is not found (404).
//   - Metadata is validated: names, labels, annotations, finalizers, owner references, and what must not change (422).
//   - An update that changes nothing is no write. What clients send and get has been through JSON: times are whole
//     seconds, and what is empty in metadata and in built-in kinds is absent. In a custom kind an empty list from a patch
//     is not an absent one.
//   - Status: a status write of a custom kind changes nothing else. That of a built-in kind carries metadata (pods: but for
//     their owners; volume attachments: none); nodes are the only kind with a subresource whose status survives create.
//   - Generations follow the desired state and the deletion, for custom kinds and for the built-in ones which have
//     one; nodes have none.
//   - Patches: a patch that does not fit its object is invalid (422), one that is none a bad request (400). Merge patches
//     replace lists; strategic ones, for built-in kinds alone (415), merge owner references by uid and conditions by type,
//     and replace taints.
//   - Finalizers and grace periods: what is deleted stays, marked, until both are over. A marked object takes no new
//     finalizer (422). The deletion of a pod without grace is two writes, the mark and the removal.
//   - Watches start in the past, see objects enter and leave their selection, and end with 410 Gone when asked for what
//     the cluster has forgotten. Writers never wait for readers.
//   - Evictions: 429 with a cause that names the budget, 500 for two budgets, unhealthy pods by policy. An empty selector
//     covers every pod, also one without labels. The preconditions are looked at after the budget was charged, and the
//     charge is given back after two minutes.
//
// All of it is held against a real API server by tests which run the same calls on both; they are in the module of the
// end-to-end examples, and their transcripts say what happens in detail.
//
// # What stands in for a controller
//
// The status of disruption budgets is recomputed in the same breath as the write of a pod or budget that changes it
// (unless [Options].ManualBudgets); a change of an owner's replicas, and a change of labels by which a pod leaves a budget,
// are noticed with the next such write. A pod without owner counts for nothing under a maximum or a percentage, and an
// owner without replicas fails the budget, as in a real cluster; use an integer minimum for such pods. Dependents are
// deleted as soon as their last owner has gone; a foreground deletion is treated as a background one, and a reference to
// an owner that this cluster never had is left alone, which a real collector would follow up. Kubelets end pods when
// [Cluster.Tick] is called after their time, or [Cluster.Run] runs; see [Cluster.SetNodeSilent]. Volumes are detached if
// [Options].DetachTime is set, attached if AttachTime is, and told of in the status of nodes if NodeVolumes is. Requests
// take as long as Latency says. Nothing starts pods, schedules them or replaces them, or removes them with their node.
//
// # What it does not do
//
// No validation beyond metadata (neither the rules of built-in kinds nor the schemas of custom ones), few defaults, no
// admission (which taints new nodes and gives pods tolerations and volumes), no access control: namespaces need not exist,
// and deleting one deletes nothing in it. No server-side apply and no JSON patches (415), no pages (a limit is ignored),
// no lists of the past, no bookmarks, no scale subresource, no orphaned dependents. Built-in kinds are
// those of pods and their owners, nodes, volumes, budgets, secrets, config maps, events, leases, namespaces, service accounts. Versions of a built-in group are not converted into each other.
//
// The fakes of client-go add to that: contexts are not looked at, a malformed selector panics, the namespace of a binding
// is taken from the object, and a refusal that says when to come again is handed over at once, where a real client
// waits and asks up to ten times.
package draintest
