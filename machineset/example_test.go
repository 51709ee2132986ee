// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func ExampleDecide() {
	in := machineset.Observation{
		Set: newSet(1),
		Machines: []*v1alpha1.Machine{
			newMachine("a", v1alpha1.MachineRunning), newMachine("b", v1alpha1.MachineUnknown),
		},
	}

	d := machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)

	in.Complete, in.Proven = true, true // the cache has synced, nothing is left to be adopted, and a live list was made
	d = machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)
	// Output:
	// [] [machineset/ms: IncompleteView: the list of machines may be incomplete]
	// [delete machine b: TooManyMachines: chosen by Health] []
}

// A requested machine counts from its request, even if the cache is stale and the response is lost.
func ExampleObservation_expectations() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in := machineset.Observation{Set: newSet(1), Complete: true, Proven: true}
	d := machineset.Decide(in, machineset.Policy{}, now)
	fmt.Println(d.Actions)

	m, _ := machineset.NewMachine(d.Actions[0].(machinist.Create), "x8k2p")
	in.Expectations = in.Expectations.Creating(v1alpha1.MachineKind, m.Name, now) // before the call
	d = machineset.Decide(in, machineset.Policy{}, now)
	fmt.Println(d.Actions, d.Holds[0].Reason, d.NextCheck.Sub(now))

	now = d.NextCheck
	fmt.Println(machineset.Decide(in, machineset.Policy{}, now).Actions)

	in.Expectations = in.Expectations.Looked(v1alpha1.MachineKind, m.Name, nil, now) // a live read: NotFound
	fmt.Println(machineset.Decide(in, machineset.Policy{}, now).Actions)
	// Output:
	// [create 1 machine]
	// [] NotSeen 2m0s
	// [read machine ms-x8k2p from the API server]
	// [create 1 machine]
}

func ExampleClaim() {
	set := newSet(1)
	orphan := newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	orphan.ResourceVersion = "42"

	claims := machineset.Claim(set, []*v1alpha1.Machine{orphan})
	for _, edit := range claims.Adopt {
		fmt.Println(edit)
	}
	fmt.Println(claims.Settled())
	// Output:
	// update machine orphan: adopted by ms
	// false
}

// One write of a set has the new size and the names of the machines to delete.
func ExampleDecide_namedMachines() {
	in := machineset.Observation{
		Set: newSet(3), Complete: true, Proven: true,
		Machines: []*v1alpha1.Machine{
			newMachine("a", v1alpha1.MachineRunning), newMachine("b", v1alpha1.MachineRunning), newMachine("c", v1alpha1.MachinePending),
		},
	}
	in.Set.Spec.Replicas = 2
	fmt.Println(machineset.Decide(in, machineset.Policy{}, time.Now()).Actions)

	in.Set.Annotations = map[string]string{"machinist.dev/delete-first": "b"}
	fmt.Println(machineset.Decide(in, machineset.Policy{}, time.Now()).Actions)

	in.Machines = []*v1alpha1.Machine{in.Machines[0], in.Machines[2]} // b is gone
	fmt.Println(machineset.Decide(in, machineset.Policy{}, time.Now()).Reason)
	// Output:
	// [delete machine c: TooManyMachines: chosen by Health]
	// [delete machine b: TooManyMachines: chosen by NamedByPlan]
	// Settled
}
