// SPDX-License-Identifier: Apache-2.0

// Package hollow plays what machines become, without any machine, against any API
// server: Nodes that join when their VM is up and run the pods bound to them
// ([Nodes]), the attachers of their volumes, a scheduler ([Scheduler]), and a
// workload to run ([Workload]).
//
// On a real API server, with a controller manager beside it, all of it runs by
// itself:
//
//	nodes := &hollow.Nodes{Client: client, VMs: cloudVMs, Attachers: []string{"csi.example.com"}}
//	scheduler := &hollow.Scheduler{Client: client}
//	go nodes.Run(ctx)
//	go scheduler.Run(ctx)
//	…
//	nodes.Silence("node-1", true) // and what do the controllers do now?
//
// In memory, where a test has the clock in its hand, everything takes one step
// after the other, and [Replicas] and [Lifecycle] stand in for the controller
// manager:
//
//	for range seconds {
//		clock.Step(time.Second)
//		replicas.Step(ctx)
//		scheduler.Step(ctx)
//		nodes.Step(ctx)
//		lifecycle.Step(ctx)
//	}
//
// Both ways go by the same rules, which are a function of what a kubelet sees,
// what it was told, and the time.
//
// # What a kubelet does
//
//   - It registers its Node once, ready, with labels, capacity and the conditions
//     of a real one; a Node that somebody deletes is not made again, unless the VM
//     is restarted. It never touches taints: others put them on and take them off.
//   - If its VM was given a bootstrap token, the token has to be good when it joins:
//     a Secret of the cluster says so, by the rules of an API server. Otherwise it
//     tries again. Once it was let in it needs no token any more.
//   - It renews its Lease, and reports its status when it changes and every few
//     minutes. What others make of its conditions meanwhile, it corrects.
//   - It starts pods that are bound to its Node, once their CSI volumes are
//     attached and the Node says that it uses them; containers run for ever and
//     are ready, if the readiness gates of the pod agree.
//   - It ends pods that are deleted, after the time they take to stop: they
//     succeed, and are removed without grace. One with a finalizer stays behind.
//   - It ends with its VM. The Node stays, and nobody speaks for it.
//   - The agent beside it, if there is one, says how an update in place went, once
//     the Node is ready for it.
//
// # What it does not do
//
// No container is started and no image pulled, nothing is probed, no request or
// limit is looked at, no pod fails or is restarted, and there is no static pod, no log
// and no exec. An attacher puts its finalizer on attachments, not on volumes. The
// scheduler looks at neither resources nor volumes.
//
// The cluster in memory of drain/draintest has kubelets of its own: whichever is
// first removes a pod that was deleted. Tests that silence or freeze Nodes take
// them off it with its SetNodeSilent.
package hollow
