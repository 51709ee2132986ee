// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ofThree is a deployment of three machines that rolls with one more.
func ofThree() *v1alpha1.MachineDeployment {
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	labels := map[string]string{"pool": "a"}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool-a", Namespace: "garden"}}
	d.Spec.Replicas = 3
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{
		UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
	return d
}

// How long does a roll-out take, and what is there on the way?
func Example() {
	w, err := deploymenttest.New(ofThree(), deploymenttest.Model{})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Run(time.Hour)
	begin := w.Now()
	_ = w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
	for f, ok := w.Step(); ok; f, ok = w.Step() {
		if !f.Decided || len(f.Decision.Actions) == 0 {
			continue
		}
		fmt.Printf("%4s", f.At.Sub(begin))
		for _, s := range f.Sizes {
			fmt.Printf("  %s %d of %d", s.Class, s.Counts.Available, s.Spec)
		}
		fmt.Println()
	}
	fmt.Println(w.Decision().Reason, "after", w.Now().Sub(begin))
	// Output:
	//   0s  small 3 of 3  large 0 of 1
	//   0s  small 3 of 3  large 0 of 1
	// 2m0s  small 3 of 2  large 1 of 1
	// 3m0s  small 2 of 2  large 1 of 2
	// 5m0s  small 2 of 1  large 2 of 2
	// 6m0s  small 1 of 1  large 2 of 3
	// 8m0s  small 1 of 0  large 3 of 3
	// Complete after 9m0s
}

// What happens if the new machines never come up?
func ExampleModel() {
	w, err := deploymenttest.New(ofThree(), deploymenttest.Model{
		Join: func(m *v1alpha1.Machine) (time.Duration, bool) {
			return time.Minute, m.Spec.Class.Name != "broken"
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Run(time.Hour)
	_ = w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "broken" })
	w.Run(24 * time.Hour)
	for _, s := range w.Sizes() {
		fmt.Printf("%s: %d of %d are available\n", s.Class, s.Counts.Available, s.Spec)
	}
	for _, h := range w.Decision().Holds {
		if h.Reason == deployment.ReasonNewUnavailable {
			fmt.Println(h.Reason)
		}
	}
	// Output:
	// small: 3 of 3 are available
	// broken: 0 of 1 are available
	// NewMachinesUnavailable
}

// What does a gate do to a roll-out?
func ExampleWorld_Step() {
	busy := ""
	model := deploymenttest.Model{}
	model.Policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){func(c deployment.Choice) (bool, machinist.Hold) {
		if c.Machine.Name == busy {
			return false, machinist.Hold{Reason: "Busy"}
		}
		return true, machinist.Hold{}
	}}
	w, err := deploymenttest.New(ofThree(), model)
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Run(time.Hour)
	busy = w.Machines()[1].Name
	_ = w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
	for _, ok := w.Step(); ok; _, ok = w.Step() { // until it comes to rest
	}
	for _, m := range w.Machines() {
		fmt.Println(m.Spec.Class.Name, m.Name == busy)
	}
	// Output:
	// small true
	// large false
	// large false
	// large false
}
