// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// An API server without any machine has probably lost them. Nothing is deleted.
func ExampleStep_noMachines() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	class := types.NamespacedName{Namespace: "shop", Name: "small"}
	_, d := safety.Step(safety.State{}, safety.Observation{
		Listings:  []safety.Listing{safety.NewListing(class, map[string]string{"cloud:///1": "web-1"}, nil, now)},
		Machines:  drain.List[*v1alpha1.Machine]{AsOf: now, Complete: true},
		Namespace: safety.AllNamespaces,
	}, safety.DefaultPolicy(), now)
	fmt.Println(d)
	// Output:
	// nothing; waits for machineclass/shop/small: Suspicious: namespace "shop" has no machine, but VMs are listed: 1
}

// An API server does not answer for 30 seconds. Health timeouts are frozen until it answers.
func ExampleStepFreeze() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var state safety.FreezeState
	for _, err := range []error{nil, errors.New("connection refused"), errors.New("connection refused"), nil} {
		var d safety.FreezeDecision
		state, d = safety.StepFreeze(state, []safety.Probe{{Server: "target", Err: err}}, safety.FreezePolicy{}, now)
		fmt.Println(d)
		now = now.Add(30 * time.Second)
	}
	// Output:
	// not frozen since 2026-03-01T12:00:00Z
	// not frozen since 2026-03-01T12:00:00Z
	// frozen since 2026-03-01T12:00:30Z: the target API server has not answered since 2026-03-01T12:00:30Z: connection refused
	// not frozen since 2026-03-01T12:01:30Z
}

// Six of ten machines of a zone fail within a minute. None of them is replaced for an hour.
func ExampleDecideGuard() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var members []safety.GuardMember
	for i := range 10 {
		m := safety.GuardMember{ID: fmt.Sprint(i), Zone: "a", Available: true}
		if i < 6 {
			m.Available, m.FailingSince = false, now.Add(-10*time.Minute)
		}
		members = append(members, m)
	}
	d := safety.DecideGuard(safety.GuardObservation{Machine: members[0], Members: members, Complete: true}, safety.DefaultGuardPolicy(), now)
	fmt.Println(d.Reason)
	fmt.Println("the machine may be failed:", len(d.Holds) == 0)
	fmt.Println("decide again at", d.NextCheck.Format("15:04"))
	// Output:
	// ReplacementsHeld
	// the machine may be failed: false
	// decide again at 12:50
}

// A Node that has had no machine for 20 minutes is marked.
func ExampleStepUnmanaged() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := safety.UnmanagedObservation{
		Nodes:    []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.NewTime(now)}}},
		Machines: []*v1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}},
		Complete: true,
	}
	policy := safety.UnmanagedPolicy{Timeout: 20 * time.Minute}
	state, d := safety.StepUnmanaged(safety.UnmanagedState{}, in, policy, now)
	fmt.Println(d)
	_, d = safety.StepUnmanaged(state, in, policy, d.NextCheck)
	fmt.Println(d)
	// Output:
	// nothing; waits for node/n1: NodeTooYoung: it has no machine and is marked at the age of 20m0s
	// update node n1: marked; it has had no machine for 20m0s
}
