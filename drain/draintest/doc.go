// SPDX-License-Identifier: Apache-2.0

// Package draintest is a Kubernetes API server in memory, with the few controllers on which a drain depends, for tests
// and demonstrations.
//
// It is built on the fake clientsets and the object tracker of client-go, and puts between them the rules that
// controllers rely on and that the fakes leave out: optimistic locking, uids and generations, status subresources,
// finalizers and grace periods, owner references, selectors, watches with a past, evictions under disruption budgets.
//
//	cluster := draintest.New(draintest.Options{Clock: clock, Seed: 1})
//	cluster.Add(node, pods, budget)           // what was there before
//	client := cluster.Client()                // a kubernetes.Interface; informers work on it
//	cluster.Attach(&customClientset.Fake)     // clientsets of custom kinds share the store
//	cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "update", Resource: "nodes", Times: 1})
//	for next := cluster.Tick(); !next.IsZero(); next = cluster.Tick() {
//		clock.SetTime(next)               // pods end when their grace period does
//	}
//	cluster.History()                         // every accepted write, to check what must never have happened
//
// # What is like the real thing
//
//   - One counter numbers all writes. A stale resource version is a conflict (409). An update without one is refused
//     for custom kinds and a few built-in ones (422) and unconditional for the rest. The uid of an update is a
//     precondition: another incarnation, and one that is gone, is a conflict; in a patch another uid is invalid (422).
//   - An update that changes nothing is no write. What clients send and get has been through JSON: times are whole
//     seconds, and empty maps are absent.
//   - Status: see [StatusBehaviour]. A status write of a built-in kind carries metadata (pods: but for their owners);
//     nodes are the only kind with a subresource whose status survives create.
//   - Generations follow the desired state and the deletion, for custom kinds and for the built-in ones which have
//     one; nodes have none.
//   - Finalizers and grace periods: what is deleted stays, marked, until both are over. A marked object takes no new
//     finalizer (422). The deletion of a pod without grace is two writes, the mark and the removal.
//   - Watches start in the past, see objects enter and leave their selection, and end with 410 Gone when asked for what
//     the cluster has forgotten. Writers never wait for readers.
//   - Evictions: 429 with a cause that names the budget, 500 for two budgets, unhealthy pods by policy. The
//     preconditions are looked at after the budget was charged, and the charge is given back after two minutes.
//
// # What stands in for a controller
//
// The status of disruption budgets is recomputed in the same breath as the write that changes it (unless
// [Options].ManualBudgets). A pod without owner counts for nothing under a maximum or a percentage, as in a real
// cluster; use an integer minimum for bare pods. Dependents are deleted as soon as their last owner has gone; a
// foreground deletion is treated as a background one. Kubelets end pods when [Cluster.Tick] is called after their
// time, or [Cluster.Run] runs; see [Cluster.SetNodeSilent]. Volumes are detached if [Options].DetachTime is set.
// Nothing starts pods, schedules them or replaces them.
//
// # What it does not do
//
// No validation beyond metadata, few defaults, no admission, no access control: namespaces need not exist, and deleting one
// deletes nothing in it. No server-side apply (415), no pages (a limit is ignored), no exact lists of the past, no
// bookmarks, no scale subresource. Versions of a built-in group are not converted into each other. Contexts are not
// looked at, as in all fakes of client-go.
package draintest
