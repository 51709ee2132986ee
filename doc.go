// SPDX-License-Identifier: Apache-2.0

// Package machinist is the map of a library of machine lifecycles for
// Kubernetes: how machines, the VMs or hardware behind Nodes, are created,
// joined, health-checked, rolled, drained and deleted. It also has the words that the
// packages share: [Hold], [Reason] and [Event].
//
// Each concern is a package of its own, importable alone, of pure functions over
// typed state. Controllers are thin compositions of them, and live in the module
// examples beside this one; what they do is
//
//	observe -> decide -> record -> act -> observe …
//
// # What the objects are
//
// Package machine/v1alpha1 holds Machine, MachineClass, MachineSet and
// MachineDeployment, and everything that controllers of them agree on; they are
// those of Gardener's machine-controller-manager. Package machine/client has
// typed clients, listers, informers, apply configurations and fakes.
//
// # What to do next
//
//   - Package machine: what is the next step in the life of this machine?
//   - Package machineset: which machines are created, which deleted, which kept?
//   - Package deployment: how does a new generation replace an old one, and how do
//     sets share a number of machines?
//   - Package drain: how is this Node emptied of pods?
//   - Package safety: is it safe to go on? which VMs does nobody own, and which
//     sets have far too many machines?
//   - Package permits: who may be disrupted now?
//   - Package nodeops: what does the Node look like with this condition, taint or
//     label? which machine is it?
//
// # The other side
//
//   - Package driver: what must a provider implement?
//   - Package driver/drivertest: does it? And a simulated cloud that does, and
//     fails on demand.
//   - Packages codes and codes/status: how did the provider fail, and what does
//     that mean for us?
//   - Packages drain/draintest and machine/machinetest: clusters in memory, for
//     tests.
//   - Package deployment/deploymenttest: a world in virtual time that plays a
//     roll-out, for tests, predictions and explanations.
//
// # One shape
//
// A decision is a function of what was observed, a policy and the current time.
// It returns what to do now, why the rest is not done, and when to ask again. It
// does no I/O, starts no goroutine, reads no clock, and neither changes its input
// nor keeps a reference to it. A function that takes a context.Context does I/O
// or blocks; one that does not, does neither.
//
// Zero values are the cautious ones: on the zero observation, a world nobody has
// looked at, nothing is ever done; the zero policy forces nothing and kills
// nothing.
package machinist
