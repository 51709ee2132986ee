// SPDX-License-Identifier: Apache-2.0

// Package nodeops decides what a node looks like with a condition, a taint, a label, a cordon
// or the template of its machine, and which machine a node belongs to.
//
// The decisions are pure functions: a node, or the part of it that matters, goes in; a new one comes
// out, together with whether it differs. Nothing that goes in is modified or shared with
// what comes out. Doing the same twice changes nothing the second time, so that a loop can ask every
// time and write only when there is something to write:
//
//	taints, changed := nodeops.SetTaint(node.Spec.Taints, preserved)
//	if changed {
//		// store node with these taints
//	}
//
// [UpdateNode] stores any such edit: it reads, edits and writes the node, and begins again if
// another writer came first. No such write loses what another one did. A function that takes a
// [context.Context] calls the API server; one that takes none does no I/O.
//
//	_, changed, err := nodeops.UpdateNode(ctx, client, name, func(node *corev1.Node) (changed bool, _ error) {
//		node.Spec.Taints, changed = nodeops.SetTaint(node.Spec.Taints, preserved)
//		return changed, nil
//	})
//
// # Templates
//
// A [Template] is kept on a node by comparison of three states: what is wanted, what was applied last
// (recorded in an annotation of the node), and what is there. Only what was applied before is ever
// removed. [SyncTemplate] is for labels, annotations and taints, [SyncCapacity] for virtual
// capacity; they go to the API server separately, because one is part of the node proper and the other
// of its status, and a write of the one drops changes of the other.
//
// # Matching
//
// An [Index] finds the machine of a node by the node name that the machine recorded, or by
// provider ID. Provider IDs are compared in the spelling of [NormalizeProviderID].
// Contradicting evidence is a conflict with the names of the machines involved, and never a guess.
//
// # Cordons
//
// A [Cordon] keeps pods off a node: by spec.unschedulable, which is one flag for everybody, people included,
// or by a taint of the owner's; if wished it also takes the node out of load balancers, and declares it out of service.
// Each owner keeps a claim in an annotation, and another annotation remembers what cordons have
// set. So [Uncordon] opens the node when the last owner leaves, and only if a cordon had closed it:
//
//	cordon := nodeops.Cordon{Owner: "os-update", Reason: "kernel 7.1"}
//	_, err := nodeops.CordonNode(ctx, client, name, uid, cordon, now)
//	… // drain, update, reboot
//	_, err = nodeops.UncordonNode(ctx, client, name, uid, cordon.Owner)
//
// [Cordons] tells who holds a node, since when, and what somebody took away meanwhile.
//
// # What this package does not do
//
// It does not decide which taint, label or condition a node should have, does not drain, does not
// know whether the owner of a claim still lives, and does not watch anything.
package nodeops
