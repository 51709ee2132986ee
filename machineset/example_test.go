// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// exampleSet returns a set of which examples show the name and the replicas.
func exampleSet(replicas int32) *v1alpha1.MachineSet {
	set := newSet(replicas)
	set.Name = "workers-7d4f9"
	return set
}

func ExampleDecide() {
	machine := newMachine
	in := machineset.Observation{
		Set: exampleSet(2),
		Machines: []*v1alpha1.Machine{
			machine("a", v1alpha1.MachineRunning),
			machine("b", v1alpha1.MachineUnknown),
			machine("c", v1alpha1.MachineRunning),
		},
	}

	d := machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)

	in.Complete = true // the cache has synced, and nothing is left to be adopted
	d = machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)
	// Output:
	// [] [workers-7d4f9: IncompleteView (the list of machines may not be whole)]
	// [delete b (TooManyMachines)] []
}

// What was asked for counts from the moment it is asked for, even if the cache
// lags behind and the answer is lost.
func ExampleInFlight() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in := machineset.Observation{Set: exampleSet(1), Complete: true}
	fmt.Println(machineset.Decide(in, machineset.Policy{}, now).Actions)

	name, _ := machineset.Name(in.Set, "x8k2p")
	in.InFlight = in.InFlight.Creating(name, now) // before the call
	d := machineset.Decide(in, machineset.Policy{}, now)
	fmt.Println(d.Actions, d.Holds[0].Reason, d.NextCheck.Sub(now))

	now = d.NextCheck
	fmt.Println(machineset.Decide(in, machineset.Policy{}, now).Actions)

	in.InFlight = in.InFlight.Looked(name, nil, now) // a live read: NotFound
	fmt.Println(machineset.Decide(in, machineset.Policy{}, now).Actions)
	// Output:
	// [create 1 (TooFewMachines)]
	// [] InFlight 2m0s
	// [look for workers-7d4f9-x8k2p (NotSeenInTime)]
	// [create 1 (TooFewMachines)]
}

func ExampleFirstToGo() {
	young := newMachine("young", v1alpha1.MachineRunning)
	young.CreationTimestamp = metav1.NewTime(now)
	old := newMachine("old", v1alpha1.MachineRunning)
	dear := newMachine("dear", v1alpha1.MachineFailed)
	dear.Annotations = map[string]string{v1alpha1.MachinePriority: "9"}
	broken := newMachine("broken", v1alpha1.MachineFailed)

	for _, m := range machineset.FirstToGo([]*v1alpha1.Machine{dear, young, old, broken}, 3, now) {
		fmt.Println(m.Name)
	}
	// Output:
	// broken
	// old
	// young
}

func ExampleClaim() {
	set := exampleSet(1)
	orphan := newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	orphan.ResourceVersion = "42"

	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{orphan})
	if err := machineset.OwnerSet(set).MayAdopt(set); err != nil { // set: read live
		fmt.Println(err)
	}
	for _, a := range claims.Adopt {
		patch, _ := a.Edit.Patch()
		fmt.Println(a.Verdict, a.Edit.Name, len(patch) > 0)
	}
	fmt.Println(claims.Settled())
	// Output:
	// Adopt orphan true
	// false
}

func ExampleBatches() {
	fmt.Println(machineset.Batches(10))
	// Output:
	// [1 2 4 3]
}

func ExampleStatus() {
	in := machineset.Observation{
		Set: exampleSet(2), Complete: true,
		Machines: []*v1alpha1.Machine{newMachine("a", v1alpha1.MachineRunning), newMachine("b", v1alpha1.MachinePending)},
	}
	s := machineset.Status(in, machineset.Failure{}, now)
	fmt.Println(s.Replicas, s.AvailableReplicas, machineset.StatusChanged(in.Set.Status, s))
	// Output:
	// 2 1 true
}
