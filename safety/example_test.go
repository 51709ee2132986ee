// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// observe returns two VMs and one machine, as listed at a time.
func observe(at time.Time) safety.Observation {
	class := types.NamespacedName{Namespace: "shop", Name: "small"}
	vms := map[string]string{"cloud:///1": "web-1", "cloud:///2": "web-2"}
	web1 := &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{ProviderID: "cloud:///1"}}
	web1.Namespace, web1.Name = "shop", "web-1"
	return safety.Observation{
		Listings:  []safety.Listing{safety.NewListing(class, vms, nil, at)},
		Machines:  drain.List[*v1alpha1.Machine]{Items: []*v1alpha1.Machine{web1}, AsOf: at, Complete: true},
		Namespace: safety.AllNamespaces,
	}
}

// A VM without a machine is held for 10 minutes, and then deleted.
func ExampleStep() {
	var state safety.State
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range 2 {
		var d safety.Decision[machinist.Action]
		state, d = safety.Step(state, observe(now), safety.DefaultPolicy(), now)
		fmt.Println(now.Format("15:04"), d)
		now = d.NextCheck
	}
	// Output:
	// 12:00 nothing; waits for vm/cloud:///2: WaitingForGrace: NoMachine for 0s; the grace is 10m0s
	// 12:10 delete vm/cloud:///2 of machine/shop/web-2: NoMachine: without a machine in the listings from 2026-03-01T12:00:00Z to 2026-03-01T12:10:00Z; 1 of 2 VMs have no machine; machines read: 1; deletion 1 of at most 5 within 15m0s
}
