// SPDX-License-Identifier: Apache-2.0

// Package scenarios has tests of machines on a real control plane. The manager is a process that is
// killed, stopped, run twice and disconnected:
//
//	go test ./scenarios                  # in the folder examples/e2e
//	go test ./scenarios -run Killed -v   # some of them, with times
//
// The scenarios of TestCompositions are played by each composition of the controllers: the program over
// client-go, and the one over controller-runtime.
//
// The first run builds the control plane, which takes minutes: see package controlplane. Each
// scenario has an environment of its own, see package env. At its end the test checks that no
// request of the manager was refused, that no log and no Event contains a secret, and that no bound
// was violated (see package audit).
package scenarios
