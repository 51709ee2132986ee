// SPDX-License-Identifier: Apache-2.0

// Package conformance proves that the in-memory cluster of the SDK behaves like a real API server: every scenario of its
// tests runs once on package drain/draintest and once on etcd, kube-apiserver and kube-controller-manager, and both
// have to tell the same story.
//
//	scenario(world)            // calls through client-go and the typed clientset, nothing else
//	world.transcript()         // what each call answered: ok, or the code, reason and causes; the fields that matter
//	inMemory == onTheServer == testdata/<scenario>.txt
//
// The golden file shows a change of either of them. It is written from what the real
// server does:
//
//	go test ./conformance -update
//
// What differs from run to run (uids, times, versions, generated names, the namespace) is replaced by names. What the
// package comment of draintest says is not done is not in a scenario: admission, defaults and validation of built-in
// kinds, access control, namespaces that have to exist, server-side apply, JSON patches, secrets in plain text, orphaned dependents, pages.
package conformance
