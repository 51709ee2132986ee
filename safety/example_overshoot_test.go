// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// A set creates machines without end. It is frozen, and its deployment with it.
func ExampleStepOvershoot() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{overDeployment("workers", 3, 1)},
		Sets:        []*v1alpha1.MachineSet{overSet("workers-x7d2k", "workers", 3)},
		Complete:    true,
	}
	state, _ := safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), now.Add(-time.Hour))

	in.Machines = overMachines("workers-x7d2k", 9)
	_, d := safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), now)
	for _, w := range d.Actions {
		fmt.Println(w) // write metadata, then status, of w.Set or w.Deployment; report w.Event
	}
	fmt.Println("look again at", d.NextCheck.Format("15:04"))
	// Output:
	// Freeze set workers-x7d2k: The number of machines backing MachineSet: workers-x7d2k is 9 >= 6 which is the Max-ScaleUp-Limit
	// Freeze deployment workers: The number of machines backing MachineSet: workers-x7d2k is 9 >= 6 which is the Max-ScaleUp-Limit
	// look again at 12:01
}
