// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// A VM that no machine knows is held until a second listing, and then deleted.
func ExampleStep() {
	class := types.NamespacedName{Namespace: "shoot", Name: "small"}
	look := func(at time.Time) safety.Observation {
		vms := map[string]string{"cloud:///1": "worker-a", "cloud:///2": "worker-b"}
		return safety.Observation{
			Listings: []safety.Listing{safety.NewListing(class, vms, nil, at)},
			Machines: safety.View[*v1alpha1.Machine]{
				Items: []*v1alpha1.Machine{machine("shoot", "worker-a", "cloud:///1")}, AsOf: at, Complete: true,
			},
			Namespace: safety.AllNamespaces,
		}
	}
	var state safety.State
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range 2 {
		var d safety.Decision
		state, d = safety.Step(state, look(now), safety.DefaultPolicy(), now)
		fmt.Println(now.Format("15:04"), d)
		now = d.NextCheck
	}
	// Output:
	// 12:00 nothing; waits for vm cloud:///2: WaitingForGrace: NoMachine for 0s of 10m0s
	// 12:10 delete VM cloud:///2 of machine shoot/worker-b: NoMachine: unowned in the listings from 2026-03-01T12:00:00Z to 2026-03-01T12:10:00Z; 1 of 2 VMs have no machine; 1 machines were read; deletion 1 of at most 5 within 15m0s
}

// An API server that lost its machines looks like a cloud full of orphans.
func ExampleStep_emptyInventory() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	class := types.NamespacedName{Namespace: "shoot", Name: "small"}
	_, d := safety.Step(safety.State{}, safety.Observation{
		Listings:  []safety.Listing{safety.NewListing(class, map[string]string{"cloud:///1": "worker-a"}, nil, now)},
		Machines:  safety.View[*v1alpha1.Machine]{AsOf: now, Complete: true},
		Namespace: safety.AllNamespaces,
	}, safety.DefaultPolicy(), now)
	fmt.Println(d)
	// Output:
	// nothing; waits for class shoot/small: Suspicious: 1 VMs are listed, and there is no machine in namespace "shoot"
}
