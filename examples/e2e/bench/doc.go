// SPDX-License-Identifier: Apache-2.0

// Program bench measures what machines cost, and whether that keeps
// within the targets:
//
//	go run ./bench
//	go run ./bench -machines 1,20,200 -rounds 3
//
// Everything is real but the cloud and what runs on it: an API server of its own
// (package controlplane), the manager as a process with the rights of its service
// account (package stage), VMs that are there and gone at once (package cloud),
// and kubelets that join when they see their VM (package hollow).
//
// It first makes and deletes single machines one after the other, and then
// deployments of each size. For each it prints
//
//   - how long machines take from when they are seen first to each step, and from
//     the deletion to the end, by a watch of its own: median, 95th percentile and
//     the slowest. The whole is from the request until the last machine is there;
//   - how many requests the manager makes for each moments, from the audit log;
//   - what CPU time the process of the manager takes for each moments, beyond what it
//     takes when nothing happens, and the most memory it ever held (Linux only).
//
// The manager runs with rate limits so high that they are not what is measured, unless
// -qps and -burst say otherwise, and does not wait for the cloud to show what it made, as this cloud shows
// everything at once. Leader election is on as usual, but its requests are not
// counted: they depend on the time and not on the machines. The journal of the
// stage makes sure that nothing was fast because it was wrong.
//
// The targets: an empty machine is gone within a second; a moments takes at most 12
// writes to the control cluster, everything counted (machines, sets, deployments,
// classes, Secrets, Events), in the largest deployment, which spreads out what a
// deployment costs once; and a moments in it costs at most 1.3 times what it costs
// among 20. A target is not met by what was not measured: every step of every moments
// must have been seen, and the journal must have missed nothing; on Linux the CPU
// time must be known, and elsewhere nothing is claimed about it.
//
// Exit status 0 means that the targets are met, 1 that one is not or that
// something went wrong, 2 that the flags are wrong.
package main
