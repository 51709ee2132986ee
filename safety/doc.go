// SPDX-License-Identifier: Apache-2.0

// Package safety decides which VMs without a machine are deleted ([Step]), which sets are frozen
// because they have too many machines ([StepOvershoot]), which Nodes have no machine
// ([StepUnmanaged]), whether the API servers answer ([StepFreeze]), and which failures are too many
// to be replaced ([DecideGuard]). Each takes what was observed and a policy, such as [Observation]
// and [Policy], and returns a decision, such as a [Decision].
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		"k8s.io/apimachinery/pkg/types"
//
//		"github.com/machinist-dev/machinist"
//		"github.com/machinist-dev/machinist/drain"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//		"github.com/machinist-dev/machinist/safety"
//	)
//
//	func main() {
//		web1 := new(v1alpha1.Machine)
//		web1.Namespace, web1.Name, web1.Spec.ProviderID = "shop", "web-1", "cloud:///1"
//		vms := map[string]string{"cloud:///1": "web-1", "cloud:///2": "web-2"}
//		class := types.NamespacedName{Namespace: "shop", Name: "small"}
//		var state safety.State
//		for now := time.Now(); ; {
//			var d safety.Decision[machinist.Action]
//			state, d = safety.Step(state, safety.Observation{
//				Listings:  []safety.Listing{safety.NewListing(class, vms, nil, now)},
//				Machines:  drain.List[*v1alpha1.Machine]{Items: []*v1alpha1.Machine{web1}, AsOf: now, Complete: true},
//				Namespace: safety.AllNamespaces,
//			}, safety.DefaultPolicy(), now)
//			fmt.Println(d) // first: web-2 waits; 10 minutes later: delete VM cloud:///2
//			if len(d.Actions) > 0 {
//				return
//			}
//			now = d.NextCheck
//		}
//	}
//
// Package safety/runner lists the VMs first and reads the machines afterwards. Before each deletion
// it reads the machine again and asks [DeleteVM.StillValid].
//
// # Conditions for a deletion
//
//   - Both lists are complete and recent, and the machines were read after the VMs.
//   - No machine has the provider ID of the VM. No machine with the name of the VM is waiting
//     for its provider ID.
//   - There is at least one machine, and at most [Policy.MaxPercent] of the VMs have none.
//     VMs deleted within 24 hours count as VMs without a machine.
//   - The listing has the VMs of most machines of its class.
//   - Two listings at least [Policy.Grace] apart show the VM without a machine.
//   - Fewer than [Policy.MaxDeletions] deletions were proposed within [Policy.Period].
//
// If a condition fails, the decision has a [machinist.Hold]. A listing that fails holds only
// its own class. A VM whose class was deleted is not found.
package safety
