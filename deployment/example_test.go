// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observed returns what is observed of a deployment of three machines that may have one
// more, with sets of so many machines that are wanted, exist and are available.
func observed(sets string) deployment.Observation {
	return newScenario("rolling 3 +1 want=large revision=2; " + sets).in
}

func ExampleDecide() {
	in := observed("small 3/3/3")
	policy := deployment.Policy{Discourage: deployment.DiscourageNone}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decide(in, policy, now)
	for _, a := range dec.Actions {
		fmt.Println(a)
		fmt.Println(a.Event())
	}
	fmt.Println(dec.NextCheck.Sub(now))
	// Output:
	// create set md-67bdf with 1 replica: 3 machines, 4 allowed
	// Normal ScalingMachineSet Scaled up machine set md-67bdf to 1
	// 30s
}

func ExampleDecide_cut() {
	in := observed("small 3/3/2; large 2/2/2")
	dec := deployment.Decide(in, deployment.Policy{Discourage: deployment.DiscourageNone}, time.Now())
	for _, t := range dec.Targets {
		fmt.Println(t)
		for _, v := range t.Victims {
			fmt.Println("  deletes", v.Machine.Name, "by", v.By)
		}
	}
	// Output:
	// small 3 -> 1 without small-2, small-0: 3 machines available, minimum 3
	//   deletes small-2 by Availability
	//   deletes small-0 by Name
	// large 2 -> 2
}

func ExampleDecide_waiting() {
	in := observed("small 3/3/3; large 1/1/0")
	in.Machines[3].Status.LastOperation = v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed,
		ErrorCode: codes.ResourceExhausted.String(), Description: "no more in this zone",
	}
	dec := deployment.Decide(in, deployment.Policy{Discourage: deployment.DiscourageNone}, time.Now())
	for _, h := range dec.Holds {
		fmt.Println(h)
	}
	// Output:
	// machine/large-0: NoCapacity: no capacity for 1 machine of set large; the rollout continues without it: no more in this zone
	// machineset/large: SurgeUsedUp: 4 machines >= 3 replicas + 1 max surge
	// machineset/small: MinimumAvailable: 3 machines available <= 3 replicas - 0 max unavailable
}

func ExampleBoundsOf() {
	d := rolling(3, 1, 0)
	d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("-10%"))
	fmt.Println(deployment.BoundsOf(d))
	d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxSurge = 10, new(intstr.FromString("25%"))
	b, err := deployment.BoundsOf(d)
	fmt.Println("at most", b.Most(), "at least", b.Least(), err)
	d.Spec.Strategy.RollingUpdate = nil
	fmt.Println(deployment.BoundsOf(d))
	// Output:
	// {3 0 1} <nil>
	// at most 13 at least 10 <nil>
	// {10 0 0} strategy without usable bounds: "RollingUpdate"
}

func ExampleValidate() {
	d := rolling(3, 1, 0)
	d.Spec.Strategy.RollingUpdate.MaxSurge = nil
	for _, err := range deployment.Validate(d) {
		fmt.Println(err)
	}
	// Output:
	// spec.strategy.rollingUpdate.maxSurge: Required value: unable to convert maxSurge to int32
}

func ExampleScalingOf() {
	in := observed("small 4/4/4; large 2/2/1")
	for _, t := range deployment.ScalingOf(in.Deployment, in.Sets[1], in.Sets[:1]).Targets {
		fmt.Println(t)
	}
	// Output:
	// small 4 -> 2
	// large 2 -> 2
}
