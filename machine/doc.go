// SPDX-License-Identifier: Apache-2.0

// Package machine decides the next step for one machine: [Decide] returns a [Decision] with at
// most one [machinist.Action] from an [Observation] and a [Policy].
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		"github.com/machinist-dev/machinist/machine"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		m := &v1alpha1.Machine{} // read it from the API server
//		m.Name, m.UID = "worker-1", "1"
//		m.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
//		d := machine.Decide(machine.Observation{Machine: m}, machine.DefaultPolicy(), time.Now())
//		fmt.Println(d) // update machine worker-1: finalizer (New)
//	}
//
// A controller carries the action out, observes its result, and decides again, until Action is nil.
// Updates and deletions are those of package machinist, and [Call] calls the driver. Then the
// controller waits for [Decision.NextCheck] or a change; Affected of package machine/runner returns the
// machines that a change concerns. It may stop at any point: what must survive is in the Machine, and is
// written before anything depends on it.
//
// The page docs/machine.md describes the steps, their reasons and timeouts.
package machine
