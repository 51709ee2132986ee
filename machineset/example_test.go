// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// exampleLabels are the labels of the machines of the set in the examples.
var exampleLabels = map[string]string{"pool": "a"}

// exampleSet returns a set of machines of the class "small".
func exampleSet(replicas int32) *v1alpha1.MachineSet {
	set := &v1alpha1.MachineSet{}
	set.Name, set.UID, set.Finalizers = "workers-7d4f9", "1", []string{v1alpha1.MCMFinalizerName}
	set.Spec.Replicas = replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: exampleLabels}
	set.Spec.Template.Labels = exampleLabels
	set.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	return set
}

// exampleMachine returns a machine of exampleSet in a phase.
func exampleMachine(name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name, m.UID, m.Labels = name, types.UID(name), maps.Clone(exampleLabels)
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exampleSet(0), v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	m.Spec.ProviderID = "cloud:///" + name
	m.Status.CurrentStatus.Phase = phase
	return m
}

func ExampleDecide() {
	in := machineset.Observation{
		Set: exampleSet(2),
		Machines: []*v1alpha1.Machine{
			exampleMachine("a", v1alpha1.MachineRunning),
			exampleMachine("b", v1alpha1.MachineUnknown),
			exampleMachine("c", v1alpha1.MachineRunning),
		},
	}

	d := machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)

	in.Complete, in.Proven = true, true // the cache has synced, nothing is left to be adopted, and a live list was made
	d = machineset.Decide(in, machineset.Policy{}, time.Now())
	fmt.Println(d.Actions, d.Holds)
	// Output:
	// [] [machineset/workers-7d4f9: IncompleteView: the list of machines may be incomplete]
	// [delete machine b: TooManyMachines: chosen by Health] []
}

// A requested machine counts from its request, even if the cache is stale and the response is lost.
func ExampleObservation_expectations() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in := machineset.Observation{Set: exampleSet(1), Complete: true, Proven: true}
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
	// [read machine workers-7d4f9-x8k2p from the API server]
	// [create 1 machine]
}

func ExampleClaim() {
	set := exampleSet(1)
	orphan := exampleMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	orphan.ResourceVersion = "42"

	claims := machineset.Claim(set, []*v1alpha1.Machine{orphan})
	for _, edit := range claims.Adopt {
		fmt.Println(edit)
	}
	fmt.Println(claims.Settled())
	// Output:
	// update machine orphan: adopted by workers-7d4f9
	// false
}

// One write of a set has the new size and the names of the machines to delete.
func ExampleDecide_namedMachines() {
	in := machineset.Observation{
		Set: exampleSet(3), Complete: true, Proven: true,
		Machines: []*v1alpha1.Machine{
			exampleMachine("a", v1alpha1.MachineRunning), exampleMachine("b", v1alpha1.MachineRunning), exampleMachine("c", v1alpha1.MachinePending),
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
