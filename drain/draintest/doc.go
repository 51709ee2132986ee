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
// It uses the fake clientsets of client-go and adds the rules that they do not have: optimistic locking, UIDs,
// generations, status subresources, finalizers, grace periods, owner references, selectors, watches from a resource
// version on, and evictions under PodDisruptionBudgets. [Cluster.Attach] adds clientsets of custom kinds. With a fake
// Clock in the options, [Cluster.Tick] carries out what is due and returns the next time.
//
// # Like a real API server
//
//   - All writes have increasing resource versions. A stale version is a conflict (409), an invalid one an internal error
//     (500). An update without version, or with 0, is refused for custom kinds and a few built-in ones (422). For others it
//     is unconditional. The UID of an update is a precondition: another UID is a conflict, and invalid in a patch (422).
//   - Metadata is validated: names, labels, annotations, finalizers, owner references, and immutable fields (422).
//   - An update without a change is no write. Objects are encoded as JSON: times are whole seconds. Empty fields of metadata
//     and of built-in kinds are absent. In a custom kind, an empty list of a patch is kept.
//   - Status: a status write of a custom kind changes only the status. That of a built-in kind also changes metadata, except
//     owner references of pods, and no metadata of volume attachments. A create drops the status, except that of a node.
//   - Generations change with the desired state and the deletion, for custom kinds and built-in ones that have a generation.
//     Nodes have none.
//   - Patches: a patch that does not fit its object is invalid (422), malformed JSON a bad request (400). Merge patches
//     replace lists. Strategic patches, only for built-in kinds (else 415), merge owner references by UID and conditions by
//     type, and replace taints.
//   - Deleted objects stay until finalizers and grace period are over. A deleted object takes no new finalizer (422). The
//     deletion of a pod without grace period is two writes: the deletion timestamp and the removal.
//   - Watches start at a resource version, and show objects that begin or cease to match their selector. A version that the
//     cluster has dropped ends the watch with 410 Gone. Writers never wait for readers.
//   - Evictions: 429 with a cause that has the budget, 500 for two budgets, unready pods by the policy of the budget. An
//     empty selector covers every pod. Preconditions are checked after the budget was charged. The charge ends after two
//     minutes.
//
// Tests in the module of the end-to-end examples make the same calls to a real API server. Their transcripts have the
// details.
//
// # Simulated controllers
//
// The status of a PodDisruptionBudget changes together with the write of a pod or budget, unless [Options].ManualBudgets
// is set. A change of replicas, and a change of labels that ends the coverage of a pod, count with the next such write. A
// pod without owner does not count for maxUnavailable and percentages; an owner without replicas fails the budget, as in a
// real cluster. Use an integer minAvailable for such pods.
//
// Dependents are deleted together with their last owner. A foreground deletion is a background deletion. A reference to an
// owner that this cluster never had is ignored, unlike in a real cluster.
//
// Kubelets end pods when [Cluster.Tick] is called after their time, or while [Cluster.Run] runs. [Cluster.SetNodeSilent]
// stops one. Volumes are detached with [Options].DetachTime, attached with AttachTime, and reported in the status of nodes
// with NodeVolumes. Nothing starts, schedules or replaces pods, or deletes the pods of a deleted node.
//
// # Not simulated
//
// No validation except metadata, few defaults, no admission, no authorization. Namespaces need not exist, and the deletion
// of a namespace deletes nothing in it. No server-side apply and no JSON patches (415). No pages (a limit is ignored), no
// lists at an older version and no bookmarks. No scale subresource, no orphaned dependents. Built-in kinds are pods and their
// owners, nodes, volumes, budgets, secrets, config maps, events, leases, namespaces and service accounts. Versions of a
// built-in group are not converted.
//
// The fakes of client-go ignore contexts, panic at a malformed selector, and take the namespace of a binding from the
// object. They return a 429 with Retry-After at once, while a real client retries up to ten times.
package draintest
