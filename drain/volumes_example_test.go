// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/drain"
)

// A drain that waits until the volume of a database has come off the Node, for two
// minutes at the most. The volume of a DaemonSet stays, and is not waited for.
func ExampleVolumePolicy() {
	policy := drain.Policy{Volumes: drain.VolumePolicy{Wait: true, DetachTimeout: 2 * time.Minute}}
	agent := newPod("agent", ownedBy("DaemonSet"), volumesOf("cache"))
	in := observed(agent, newPod("db-0", ownedBy("StatefulSet"), volumesOf("data")))
	in.Claims = drain.All(volumeClaim("data", "pv-data"), volumeClaim("cache", "pv-cache"))
	in.Attachments = drain.All(volumeAttached("pv-data", "node-1"), volumeAttached("pv-cache", "node-1"))

	var state drain.State
	var plan drain.Decision
	step := func(what string, after time.Duration) {
		state, plan = drain.Step(state, in, policy, now.Add(after))
		fmt.Println(what)
		for _, v := range plan.Volumes {
			fmt.Println(" ", v.Action, v.Volume, v.Reason)
		}
	}
	step("the pod runs:", 0)
	in.Pods = drain.All(agent)
	step("the pod has gone:", 30*time.Second)
	in.Attachments = drain.All(volumeAttached("pv-cache", "node-1"))
	step("its volume, too:", 40*time.Second)
	fmt.Println(plan.Outcome)
	// Output:
	// the pod runs:
	//   ignore pv-cache Stays
	//   wait pv-data InUse
	// the pod has gone:
	//   ignore pv-cache Stays
	//   wait pv-data Detaching
	// its volume, too:
	//   ignore pv-cache Stays
	// Drained
}
