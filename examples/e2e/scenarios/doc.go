// SPDX-License-Identifier: Apache-2.0

// Package scenarios plays lives of machines on a real control plane, with the
// manager as a process that is killed, stopped, doubled and cut off. It holds
// tests only:
//
//	go test ./scenarios                  # from the module of examples/e2e
//	go test ./scenarios -run Killed -v   # one of them, with its times
//
// The first run builds the control plane, which takes minutes: see package
// controlplane. Every scenario has a stage of its own, see package stage, and ends
// with the same questions: was the manager ever refused something that it must not
// ask for, does a log or an Event hold a secret, and was a bound broken on the way
// (see package journal).
package scenarios
