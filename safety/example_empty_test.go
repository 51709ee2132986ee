// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

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
