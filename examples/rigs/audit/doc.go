// SPDX-License-Identifier: Apache-2.0

// Package audit checks from recorded history whether controllers violated a bound at any
// time, not only in the final state.
//
// [Check] compares two records: the changes of the Machines, MachineSets and
// MachineDeployments, and the history of the cloud. The controllers make neither record.
//
//	recorder, err := audit.Record(ctx, machines, namespace) // before the first change
//	if err != nil {
//		return err
//	}
//	runScenario() // roll, restart, delete
//	figures, err := audit.Check(recorder.Stop(), cloud.History(), cloud.Snapshot(), audit.Options{})
//
// [Check] verifies these bounds:
//
//   - A deployment never has more live machines than its replicas and surge, nor more
//     VMs of live machines. A set creates no machine beyond its replicas.
//   - A deployment that was complete once keeps its replicas less maxUnavailable
//     available.
//   - A machine never has two VMs.
//   - A VM exists only while a machine with a finalizer exists for it.
//   - The cloud is empty at the end.
//
// # Two sources
//
// [FromHistory] takes the history of the cluster in memory, which is complete and has
// the times of the writes. A [Recorder] lists and watches a real API server with its own
// client. It receives every write in the order of the resource versions, a little later
// than the write. It may miss writes during an outage of the API server.
//
// # What is reported
//
// A [Violation] is reported only if no order of events without one explains the same
// records:
//
//   - What follows from the objects alone is judged in the order of the resource
//     versions. Controllers act on caches: a lowered bound and the failure of a machine count
//     [Options].Tolerance later.
//   - That a machine never has two VMs follows from the record of the cloud alone.
//   - Where the two records meet, a write happened at most the tolerance before it was
//     received, and not later. A VM is reported only if it is too late or too early
//     for all of these times.
//   - What may have happened during an outage of the watch is not reported. [Log].Gaps
//     contains the outages, and [Figures].Unproven what could not be judged because of
//     them. A log without violations proves something only if [Figures.Complete].
//
// A tolerance that is too large hides violations. A tolerance below the delay of the
// watch reports false positives.
//
// # What this package does not do
//
// It does not check that the machines are the right ones, nor how long anything took.
// Only [Record] sends requests to an API server.
package audit
