// SPDX-License-Identifier: Apache-2.0

// Package machinist has the types that the packages of this module share: [Hold] is what a
// decision waits for, [Waits] is since when, [Reason] is why, and [Event] is what it reports; [Earliest]
// combines times of next checks. The packages decide about machines, the VMs or hardware behind
// Nodes of Kubernetes:
//
//   - machine: what is the next step for this machine?
//   - machineset: which machines does a set create, delete and keep?
//   - deployment: how does a new template replace an old one?
//   - drain: how are the pods of this Node evicted?
//   - safety: which VMs have no machine, and do many machines fail for one cause?
//   - permits: may one more machine be disrupted now?
//   - nodeops: what does a Node look like with this condition, taint or label?
//   - driver: what does a provider implement? Package driver/drivertest tests it.
//   - codes, codes/status: how did a provider fail?
//   - machine/v1alpha1: the objects, those of Gardener's machine-controller-manager (MCM).
//     Package machine/client has clients, listers, informers and fakes.
//
// Packages machine/runner, machineset/runner, deployment/runner and safety/runner carry the decisions
// out, over [Requests], and drain/runner over a client of its own; nodeops/runner writes one Node, and permits/runner stores permits.
// Packages drain/draintest, machine/machinetest and deployment/deploymenttest are clusters in memory,
// for tests.
//
// # One shape
//
// Every package that decides is a function of what was observed, a policy and the current
// time. The caller observes, decides, acts, and decides again:
//
//	Decide(Observation, Policy, now) Decision
//	Step(State, Observation, Policy, now) (State, Decision)
//
// A decision has actions as values, holds for what is not done yet, and the time of the next
// check. The functions do no I/O, read no clock and change no argument. A function that takes
// a context.Context does I/O or blocks; a function without one does neither. On the zero
// observation nothing is done, and the zero policy forces nothing.
//
// Controllers that are made of these packages are in the module examples beside this one.
package machinist
