// SPDX-License-Identifier: Apache-2.0

// Command drain evicts the pods of Nodes, and prints what it waits for: the pod, the
// PodDisruptionBudget, since when, and what happens next.
//
//	drain node-1                                       # evict, and respect PodDisruptionBudgets for any time
//	drain node-1 node-2                                # cordon both, then drain one after the other
//	drain -l zone=a --timeout 1h                       # all Nodes with these labels
//	drain node-1 --dry-run                             # print the first decision
//	drain node-1 --dry-run=server                      # the same, and the API server checks each request
//	drain node-1 -o json                               # print each decision as JSON
//	drain node-1 --explain                             # print all details of each hold
//	drain node-1 --force --delete-emptydir-data        # also evict unmanaged pods and pods with local data
//	drain node-1 --timeout 30m --force-after 20m       # after 20 minutes delete pods instead of evicting them
//	drain node-1 --wait-for-volumes                    # end when the volumes are detached as well
//	drain node-1 --owner kured --undo --timeout 10m    # claim the Node; uncordon it if the drain fails
//	drain --embedded --force --delete-emptydir-data    # try it, in a cluster in memory
//
// Flags of kubectl drain have the same meaning, with these exceptions:
//
//   - --ignore-daemonsets is true by default. With =false a Node with pods of DaemonSets is refused.
//   - --grace-period shortens the grace period of a pod and never lengthens it. 0 is refused: it
//     deletes pods from the API while they may run, which has its own flag, --force-delete-after.
//   - Drains that cannot end are refused before any Node is cordoned: for pods that no controller
//     would recreate or that would lose data, and for PodDisruptionBudgets that never allow an
//     eviction. Each obstacle is printed with the flag for it.
//   - Pods with the annotation karpenter.sh/do-not-disrupt are obstacles, too. The label
//     cluster.x-k8s.io/drain skips a pod, or waits for its completion.
//     --honor-do-not-disrupt=false and --cluster-api-labels=false turn that off.
//
// Pods that --skip-wait-for-delete-timeout ignores are printed at the end, and the exit status is 0.
//
// Exit status 0 means that all Nodes are drained, or that a dry run found that they can be. 1 means
// that a Node is not drained: the drain was blocked until the timeout, was interrupted, or the
// cluster failed. The other Nodes are drained nevertheless. 2 means that nothing was changed: the
// command line is invalid, a Node does not exist, or a drain cannot end. The first Ctrl-C ends the
// drain, and uncordons with --undo. The second ends the process.
//
// It needs these permissions:
//
//	nodes                                      get, list, watch, patch
//	nodes                                      update, with --owner, --undo or --dry-run=server
//	pods                                       list, watch
//	pods                                       delete, with --force-after, --force-delete-after or --disable-eviction
//	pods/eviction                              create
//	poddisruptionbudgets.policy                list, watch
//	daemonsets.apps                            list, watch
//	volumeattachments.storage.k8s.io           list, watch, with --wait-for-volumes
//	persistentvolumeclaims, persistentvolumes  get, list, watch, with --wait-for-volumes
//
// Only nodes, pods and evictions are required. Other lists that cannot be read are not evaluated, and
// the output says so.
package main
