// SPDX-License-Identifier: Apache-2.0

// Package conformance has tests that compare the in-memory cluster of the SDK with a real API
// server. Each scenario runs with package drain/draintest, and with etcd, kube-apiserver and
// kube-controller-manager. Both have to produce the same transcript:
//
//	scenario(world)            // calls of client-go and of the typed clientset
//	world.transcript()         // the result of each call: ok, or code, reason and causes; some fields
//	inMemory == onTheServer == testdata/<scenario>.txt
//
// The golden file shows a change of either of them. The real server writes it:
//
//	go test ./conformance -update
//
// It has the default version of Kubernetes. With another version, testdata/<version>/<scenario>.txt has
// the lines that differ, and no other line may:
//
//	MACHINIST_KUBERNETES=v1.30.14 go test ./conformance -update
//
// Names replace values that differ between runs (UIDs, times, versions, generated names, the
// namespace). The scenarios leave out what draintest does not implement, as its package comment
// says: admission, defaults and validation of built-in kinds, access control, missing namespaces,
// server-side apply, JSON patches, secrets in plain text, orphaned dependents, and pages.
package conformance
