// SPDX-License-Identifier: Apache-2.0

// Program bench measures the costs of fleets of machines, and compares them with targets:
//
//	go run ./bench
//	go run ./bench -machines 100,1000,3000
//
// It uses a real API server (package controlplane) and the manager as a process with its service
// account (package env). The cloud is simulated, without latency, and package hollow plays the
// kubelets, which join as soon as they see their VM.
//
// It creates and deletes single machines one after the other. Then it creates a deployment of each
// size, rolls it with a surge of a tenth, leaves it idle, and scales it to 0. For each of these
// phases it prints
//
//   - the time from the request to the last machine, as a watch sees it;
//   - the floor of this time: a loop makes the same writes to the API server and nothing else. These
//     are the successful writes of the manager and the kubelets, without Leases. The loop writes
//     objects of the same kinds and sizes, for as many machines at a time as the manager handles;
//   - the requests of the manager for each machine, from the audit log, and beside them the budget: the
//     largest number of each kind of request, and what they are for (budget.go);
//   - the CPU time of the manager for each machine (Linux only).
//
// For each size it prints the requests of a whole life by verb and resource, its CPU time, the times
// of its steps, the requests of the idle manager, and the peak memory of the manager.
//
// The rate limits of the manager are too high to matter, unless -qps and -burst set them. The
// manager does not wait for the cloud to list a new VM, since this cloud lists it at once. Requests
// for the lease are not counted, since they depend on the time and not on the machines. The kubelets
// renew their Leases every minute. Package audit checks that no bound was violated.
//
// With -profiles it writes CPU and heap profiles of the manager, for go tool pprof.
//
// All components share one computer, so that each target is a count, or a ratio of two figures of
// one run:
//
//   - The deletion of a single machine takes at most 3 times its floor.
//   - Each phase of the largest fleet takes at most twice its floor.
//   - A life in the largest fleet takes at most 9 requests to the control cluster without Events. It
//     includes its share of the requests for sets, deployments and classes. The requests to the
//     target cluster, for Nodes, pods and bootstrap tokens, are printed beside them.
//   - Each phase of a fleet keeps its budget: it takes no kind of request that has no line, and of no kind
//     more than its line allows.
//   - At most 1 % of the requests of each phase of a fleet are conflicts.
//   - The manager of an idle fleet makes at most 0.2 requests a second, from 10 s after the rollout on,
//     and 1 s more for each hundred machines: it has to remove the marks of the Nodes first.
//     It takes at most 0.2 % of a CPU.
//   - A manager that starts beside an idle fleet makes at most 20 requests, and none of them is a write.
//   - A machine of the largest fleet costs at most 1.1 times as much CPU time in each phase as a
//     machine of the smallest, and at most 1.1 times as many requests in its life. Each further machine
//     takes at most 35 KiB of memory.
//
// A value that was not measured does not meet its target: each step of each machine has to be
// observed, the loop has to make every write, and the audit has to be complete. On Linux the CPU time
// has to be known. Other systems have no target for it.
//
// The exit status is 0 if all targets are met, 1 if one is not or after an error, and 2 for invalid
// flags.
package main
