// SPDX-License-Identifier: Apache-2.0

// Package journal says from what was written down whether the controllers broke
// a bound on the way: not in the end, when all is well again, but at any moment.
//
// It lays two records side by side, neither of them made by the controllers: what
// happened to the Machines, MachineSets and MachineDeployments, and what happened
// in the cloud.
//
//	recorder, err := audit.Record(ctx, machines, namespace) // before anything happens
//	…                                                         // roll, kill, restart, delete
//	log := recorder.Stop()
//	figures, err := audit.Check(log, cloud.History(), cloud.Snapshot(), audit.Options{})
//
// [Check] knows these bounds:
//
//   - no deployment ever has more machines alive, or more VMs of machines that
//     are alive, than its replicas and surge, and no set makes a machine beyond
//     its replicas;
//   - no deployment is brought under its replicas less what may be unavailable,
//     once it has been complete;
//   - no machine ever has two VMs;
//   - no VM begins without a machine that guards it, and none outlives it;
//   - the cloud holds nothing in the end.
//
// # Two sources
//
// [FromHistory] takes the history of the in-memory cluster, which is complete and
// whose times are those of the writes. A [Recorder] lists and watches a real API
// server with a client of its own. It sees every write, in the order of the
// resource versions, but a little later than it happened; and after the API
// server was away it may have missed some.
//
// # What is claimed
//
// A breach is claimed only if no course of events without one would have left
// the same records:
//
//   - What follows from the objects alone is judged in the order of the resource
//     versions and does not depend on when they were seen. Controllers act on
//     caches: a bound that was lowered holds [Options].Tolerance later.
//   - That a machine never has two VMs follows from the cloud's record alone.
//   - Where the two records meet, an object may have been written as early as
//     the tolerance before it was seen, and no later than it was seen; a VM is
//     held against its machine only if this is too late or too early even so.
//   - What may have happened while nobody watched is not claimed. [Log].Gaps says
//     when that was, and [Figures].Unproven what could not be judged for it. No
//     breach is good news only if [Figures.Complete].
//
// So a tolerance that is too large overlooks something, and one that is smaller
// than the delay of the watch accuses the innocent.
//
// # What this package does not do
//
// It does not say whether the machines are the right ones, nor how long anything
// took. It asks no API server but by [Record].
package audit
