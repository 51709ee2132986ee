// SPDX-License-Identifier: Apache-2.0

// Command drain empties a node of its pods, and says what it waits for: which pod,
// which budget, since when, and what happens next.
//
//	drain node-1                                       # evict, and respect budgets for ever
//	drain node-1 --dry-run                             # what would be done, and what would be waited for
//	drain node-1 --dry-run -o json                     # the same for programs
//	drain node-1 --explain                             # everything about every pod that is waited for
//	drain node-1 --force --delete-emptydir-data        # also unmanaged pods and local data
//	drain node-1 --timeout 30m --force-after 20m       # after 20 minutes budgets are not asked any more
//	drain node-1 --wait-for-volumes                    # done when the volumes are detached as well
//	drain node-1 --owner kured --undo --timeout 10m    # claim the node; open it again if the drain fails
//	drain --embedded --force --delete-emptydir-data    # try it, in a small town in memory
//
// Flags that kubectl drain has mean what they mean there, with these exceptions:
//
//   - Pods of DaemonSets are always left alone, whether --ignore-daemonsets is given or not.
//   - --grace-period shortens the grace of a pod and never lengthens it. 0 is refused: it takes
//     pods off the API while they may run, and has a flag of its own, --force-delete-after.
//   - A plan that cannot end is refused as a whole, before the node is cordoned: pods that nobody
//     would create again or that would lose data, and budgets that allow nothing as they are
//     written. Every obstacle is named, with the flag that is for it.
//   - Pods that karpenter.sh/do-not-disrupt protects are such an obstacle, and
//     cluster.x-k8s.io/drain says of a pod that it is skipped, or waited for until it has
//     completed. --honor-do-not-disrupt=false and --cluster-api-labels=false turn that off.
//
// Pods that --skip-wait-for-delete-timeout leaves behind are named at the end, and the
// status is 0, as it is there.
//
// Exit status 0 means that the node is drained, or that the plan of a dry run can be
// carried out; 1 that it is not drained, since it was blocked until the time was over,
// was interrupted, or the cluster failed; 2 that nothing was changed, since the
// command line makes no sense, there is no such node, or the plan cannot end.
// The first Ctrl-C ends the drain, and takes the cordon back with --undo; the second
// ends the process.
//
// What it needs to be allowed to do:
//
//	nodes                                      get, list, watch, patch
//	nodes                                      update, with --owner or --undo
//	pods                                       list, watch
//	pods                                       delete, with --force-after, --force-delete-after or --disable-eviction
//	pods/eviction                              create
//	poddisruptionbudgets.policy                list, watch
//	daemonsets.apps                            list, watch
//	volumeattachments.storage.k8s.io           list, watch, with --wait-for-volumes
//	persistentvolumeclaims, persistentvolumes  get, list, watch, with --wait-for-volumes
//
// Only nodes, pods and evictions are indispensable. What it may not read is not
// evaluated, and it says so.
package main
