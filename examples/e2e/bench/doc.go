// SPDX-License-Identifier: Apache-2.0

// Program bench measures the costs of machines, and compares them with targets:
//
//	go run ./bench
//	go run ./bench -machines 1,20,200 -rounds 3
//
// It uses a real API server (package controlplane) and the manager as a process with its service
// account (package env). The cloud is simulated, without latency, and package hollow plays the
// kubelets, which join as soon as they see their VM.
//
// It creates and deletes single machines one after the other, and then deployments of each size.
// For each it prints
//
//   - the time of each step of a machine from its creation, and of its deletion, as a watch sees
//     them: median, 95th percentile and maximum. The total is the time from the request to the
//     last machine;
//   - the requests of the manager for each machine, from the audit log;
//   - the CPU time of the manager for each machine, above that of the idle process, and its peak
//     memory (Linux only).
//
// The rate limits of the manager are too high to matter, unless -qps and -burst set them. The
// manager does not wait for the cloud to list a new VM, since this cloud lists it at once. Requests
// for the lease are not counted, since they depend on the time and not on the machines. A journal
// checks that no bound was violated.
//
// The targets: an empty machine is deleted within a second. A machine of the largest deployment
// takes at most 12 writes to the control cluster, including its share of writes to sets,
// deployments, classes, Secrets and Events. It costs at most 1.3 times as much CPU time and writes
// as a machine among 20. A value that was not measured does not meet its target: each step of each
// machine has to be observed, and the journal has to be complete. On Linux the CPU time has to be
// known. Other systems have no target for it.
//
// The exit status is 0 if all targets are met, 1 if one is not or after an error, and 2 for invalid
// flags.
package main
