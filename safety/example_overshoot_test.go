// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// exampleMachines returns machines of a set, created at a time.
func exampleMachines(set *v1alpha1.MachineSet, n int, created time.Time) []*v1alpha1.Machine {
	var machines []*v1alpha1.Machine
	for i := range n {
		m := &v1alpha1.Machine{}
		m.Namespace, m.Name, m.UID = set.Namespace, fmt.Sprintf("%s-%d", set.Name, i), types.UID(fmt.Sprint(i))
		m.CreationTimestamp = metav1.NewTime(created)
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
		machines = append(machines, m)
	}
	return machines
}

// A set of 3 replicas creates 9 machines and is frozen.
func ExampleStepOvershoot() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	set := &v1alpha1.MachineSet{Spec: v1alpha1.MachineSetSpec{Replicas: 3}}
	set.Namespace, set.Name, set.UID = "shop", "web", "set-1"
	in := safety.OvershootObservation{Sets: []*v1alpha1.MachineSet{set}, Complete: true}
	state, _ := safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), now.Add(-time.Hour))

	in.Machines = exampleMachines(set, 9, now)
	_, d := safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), now)
	fmt.Println(d)
	fmt.Println(d.Actions[1].Report)
	// Output:
	// update machineset web: frozen in namespace shop; The number of machines backing MachineSet: web is 9 >= 8 which is the Max-ScaleUp-Limit; update status of machineset web: frozen
	// Normal FrozeMachineSet SafetyController: Froze MachineSet web due to replica overshooting
}
