// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// exampleDeployment wants three machines of class large, and may have one more.
func exampleDeployment() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.UID, d.Finalizers = "workers", "1", []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = 3
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}}
	d.Spec.Template.Labels = map[string]string{"pool": "workers"}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "large"}
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge:       new(intstr.FromInt32(1)),
		MaxUnavailable: new(intstr.FromInt32(0)),
	}}
	return d
}

// exampleSet has machines of another class.
func exampleSet(d *v1alpha1.MachineDeployment, class string, replicas, available int32) *v1alpha1.MachineSet {
	d = d.DeepCopy()
	d.Spec.Template.Spec.Class.Name = class
	s := deployment.BuildSet(d, nil, replicas)
	s.Name, s.UID = "workers-"+class, types.UID(class)
	s.Status.Replicas, s.Status.AvailableReplicas = replicas, available
	return s
}

// exampleMachines are as many as a set has reported, the first ones available.
func exampleMachines(sets ...*v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, s := range sets {
		for i := range s.Status.Replicas {
			m := &v1alpha1.Machine{}
			m.Name = fmt.Sprintf("%s-%d", s.Name, i)
			m.UID = types.UID(m.Name)
			m.OwnerReferences = []metav1.OwnerReference{machineset.OwnerSet(s).Reference()}
			m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
			if i >= s.Status.AvailableReplicas {
				m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
			}
			out = append(out, m)
		}
	}
	return out
}

func ExampleDecide() {
	d := exampleDeployment()
	small := exampleSet(d, "small", 3, 3)
	in := deployment.Observation{
		Deployment: d,
		Sets:       []*v1alpha1.MachineSet{small},
		Machines:   exampleMachines(small),
		Complete:   true,
	}
	policy := deployment.Policy{Discourage: deployment.DiscourageNone}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decide(in, policy, now)
	for _, a := range dec.Actions {
		fmt.Println(a)
		fmt.Println(a.Event())
	}
	fmt.Println(dec.NextCheck.Sub(now))
	// Output:
	// create workers-6974b with 1: 3 machines, 4 allowed
	// Normal ScalingMachineSet Scaled up machine set workers-6974b to 1
	// 30s
}

func ExampleDecide_cut() {
	d := exampleDeployment()
	small, large := exampleSet(d, "small", 3, 2), exampleSet(d, "large", 2, 2)
	in := deployment.Observation{
		Deployment: d,
		Sets:       []*v1alpha1.MachineSet{small, large},
		Machines:   exampleMachines(small, large),
		Complete:   true,
	}
	dec := deployment.Decide(in, deployment.Policy{Discourage: deployment.DiscourageNone}, time.Now())
	for _, t := range dec.Targets {
		fmt.Println(t)
		for _, v := range t.Victims {
			fmt.Println("  goes:", v.Machine.Name, "by", v.By)
		}
	}
	// Output:
	// workers-large 2 -> 2
	// workers-small 3 -> 1 without workers-small-2, workers-small-0: 3 machines available, minimum 3
	//   goes: workers-small-2 by Availability
	//   goes: workers-small-0 by Name
}

func ExampleDecide_waiting() {
	d := exampleDeployment()
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	small, large := exampleSet(d, "small", 3, 3), exampleSet(d, "large", 1, 0)
	large.Annotations[v1alpha1.RevisionAnnotation] = "2"
	in := deployment.Observation{
		Deployment: d,
		Sets:       []*v1alpha1.MachineSet{small, large},
		Machines:   exampleMachines(small, large),
		Complete:   true,
	}
	m := in.Machines[3]
	m.Status.LastOperation = v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed,
		ErrorCode: codes.ResourceExhausted.String(), Description: "no more in this zone",
	}
	dec := deployment.Decide(in, deployment.Policy{Discourage: deployment.DiscourageNone}, time.Now())
	for _, h := range dec.Holds {
		fmt.Println(h)
	}
	// Output:
	// workers-large-0: NoCapacity: no capacity for 1 of the machines of workers-large; the roll-out goes on as far as it can without it: no more in this zone
	// workers-large: SurgeUsedUp: 4 machines >= 3 replicas + 1 max surge
	// workers-small: MinimumAvailable: 3 machines available <= 3 replicas - 0 max unavailable
}

func ExampleBoundsOf() {
	d := exampleDeployment()
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
	d := exampleDeployment()
	d.Spec.Strategy.RollingUpdate.MaxSurge = nil
	for _, err := range deployment.Validate(d) {
		fmt.Println(err)
	}
	// Output:
	// spec.strategy.rollingUpdate.maxSurge: Required value: unable to convert maxSurge to int32
}

func ExampleScalingOf() {
	d := exampleDeployment()
	small, large := exampleSet(d, "small", 4, 4), exampleSet(d, "large", 2, 1)
	for _, t := range deployment.ScalingOf(d, large, []*v1alpha1.MachineSet{small}).Targets {
		fmt.Println(t)
	}
	// Output:
	// workers-small 4 -> 2
	// workers-large 2 -> 2
}
