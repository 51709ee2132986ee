// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
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
	s := deployment.NewSet(d, nil, replicas)
	s.Name, s.UID = "workers-"+class, "2"
	s.Status.Replicas, s.Status.AvailableReplicas = replicas, available
	return s
}

func ExampleDecide() {
	d := exampleDeployment()
	in := deployment.Observation{
		Deployment: d,
		Sets:       []*v1alpha1.MachineSet{exampleSet(d, "small", 3, 3)},
		Complete:   true,
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decide(in, deployment.Policy{}, now)
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

func ExampleDecide_waiting() {
	d := exampleDeployment()
	large := exampleSet(d, "large", 1, 0)
	large.Annotations[v1alpha1.RevisionAnnotation] = "2"
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	in := deployment.Observation{
		Deployment: d,
		Sets:       []*v1alpha1.MachineSet{exampleSet(d, "small", 3, 3), large},
		Complete:   true,
	}
	dec := deployment.Decide(in, deployment.Policy{}, time.Now())
	for _, h := range dec.Holds {
		fmt.Println(h)
	}
	// Output:
	// hold workers-large: SurgeUsedUp: 4 machines >= 3 replicas + 1 max surge
	// hold workers-small: MinimumAvailable: 3 machines sure to be available <= 3 replicas - 0 max unavailable
}

func ExampleFencePosts() {
	quarter := new(intstr.FromString("25%"))
	for _, replicas := range []int32{1, 3, 10} {
		surge, unavailable, err := deployment.FencePosts(quarter, quarter, replicas)
		fmt.Println(replicas, surge, unavailable, err)
	}
	// Output:
	// 1 1 0 <nil>
	// 3 1 0 <nil>
	// 10 3 2 <nil>
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

func ExampleScaleTargets() {
	d := exampleDeployment()
	small, large := exampleSet(d, "small", 4, 4), exampleSet(d, "large", 2, 1)
	for _, t := range deployment.ScaleTargets(d, large, []*v1alpha1.MachineSet{small}) {
		fmt.Println(t.Set.Name, t.Set.Spec.Replicas, "->", t.To)
	}
	// Output:
	// workers-small 4 -> 2
	// workers-large 2 -> 2
}
