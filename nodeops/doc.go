// SPDX-License-Identifier: Apache-2.0

// Package nodeops decides what a node looks like with a condition, a taint, a label, a fence
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
// For each decision there is a function that does the whole round against an API server: read, decide,
// write, and begin again if somebody else wrote meanwhile. They take a [context.Context]; what
// takes none does no I/O. Several decisions share one write through [UpdateNode]:
//
//	_, changed, err := nodeops.UpdateNode(ctx, client, name, func(node *corev1.Node) (bool, error) {
//		var tainted, labelled bool
//		node.Spec.Taints, tainted = nodeops.SetTaint(node.Spec.Taints, preserved)
//		node.Labels, labelled = nodeops.SetLabel(node.Labels, key, value)
//		return tainted || labelled, nil
//	})
//
// No such write loses what another one did. Taints, conditions and templates are written with the
// version that was read; labels and annotations are patched key by key.
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
// [Match], and [Index] for many nodes, find the machine of a node by the node name that the machine
// recorded, or by provider id. Provider ids are compared in the spelling of [NormalizeProviderID].
// What is not clear is a conflict with the names of those involved, and never a guess.
//
// # Fences
//
// A [Fence] keeps pods off a node: by spec.unschedulable, which is one flag for everybody, people included,
// or by a taint of the owner's; if wished it also takes the node out of load balancers, and declares it out of service.
// Each owner keeps a claim in an annotation, and another annotation remembers what fences have
// set. So [Unfence] opens the node when the last owner leaves, and only if a fence had closed it:
//
//	fence := nodeops.Fence{Owner: "os-update", Reason: "kernel 7.1"}
//	_, err := nodeops.FenceNode(ctx, client, name, uid, fence, now)
//	… // drain, update, reboot
//	_, err = nodeops.UnfenceNode(ctx, client, name, uid, fence.Owner)
//
// [Fences] tells who holds a node, since when, and what somebody took away meanwhile.
//
// # What this package does not do
//
// It does not decide which taint, label or condition a node should have, does not drain, does not
// know whether the owner of a claim still lives, and does not watch anything.
package nodeops
