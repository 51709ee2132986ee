// SPDX-License-Identifier: Apache-2.0

// Package hollow simulates Nodes and workloads against any API server, without machines.
//
// [Nodes] registers a Node when its VM is up, and runs the pods bound to it. [Scheduler]
// binds pods. [Workload] creates pods to run.
//
// On a real API server, beside a controller manager, each runs by itself:
//
//	nodes := &hollow.Nodes{Client: client, VMs: cloudVMs}
//	scheduler := &hollow.Scheduler{Client: client}
//	go nodes.Run(ctx)
//	go scheduler.Run(ctx)
//	nodes.Silence("node-1", true) // the kubelet of node-1 stops its heartbeats
//
// In memory, where a test has its own clock, each takes one step at a time. [Replicas]
// and [Lifecycle] replace the controller manager:
//
//	for range seconds {
//		clock.Step(time.Second)
//		replicas.Step(ctx)
//		scheduler.Step(ctx)
//		nodes.Step(ctx)
//		lifecycle.Step(ctx)
//	}
//
// Both modes have the same rules. A step depends only on the objects, the VMs and the
// time.
//
// # What a kubelet does
//
//   - It registers its Node once, ready, with labels, capacity and the conditions of a
//     real one. A deleted Node is registered again only if the VM is restarted. It never
//     changes taints.
//   - If its VM has a bootstrap token, the token has to be valid when the Node joins:
//     a Secret of the cluster decides, by the rules of an API server. Otherwise it
//     tries again. After the first join it needs no token.
//   - It renews its Lease, and reports its status when it changes and every few
//     minutes. It corrects conditions that other clients have changed.
//   - It starts pods that are bound to its Node. Containers run until the pod is
//     deleted. They are ready if the readiness gates of the pod are true.
//   - It ends deleted pods after their stop time: they succeed, and are removed without
//     grace. A pod with a finalizer stays.
//   - It ends with its VM. The Node object stays and is not updated any more.
//   - The agent beside it, if there is one, reports the success of an update in place,
//     once the Node is ready for it.
//
// # What it does not do
//
// It starts no containers, pulls no images, runs no probes and mounts no volumes. It ignores
// requests and limits. Pods never fail or restart. There are no static pods, logs or exec.
// The scheduler ignores resources and volumes. Package kubelets has real kubelets.
//
// The cluster in memory of drain/draintest has kubelets of its own, which also remove
// deleted pods. Tests that silence Nodes switch these kubelets off with
// SetNodeSilent of the cluster.
package hollow
