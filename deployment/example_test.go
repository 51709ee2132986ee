// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// exampleSize is a set of an example: its machines, and how many of them are available.
type exampleSize struct {
	class               string
	machines, available int32
}

// exampleDeployment returns a deployment of 3 machines of the class "large".
func exampleDeployment(surge, unavailable int) *v1alpha1.MachineDeployment {
	labels := map[string]string{"pool": "a"}
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.UID, d.Finalizers = "md", "1", []string{v1alpha1.MCMFinalizerName}
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	d.Spec.Replicas = 3
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "large"}
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
	}}
	return d
}

// exampleRollout returns a deployment with sets of these sizes. A set has the name of its class.
func exampleRollout(surge, unavailable int, sizes ...exampleSize) deployment.Observation {
	in := deployment.Observation{Deployment: exampleDeployment(surge, unavailable), Complete: true, Proven: true}
	for i, size := range sizes {
		d := in.Deployment.DeepCopy()
		d.Spec.Template.Spec.Class.Name = size.class
		set := deployment.BuildSet(d, nil, size.machines)
		set.Name, set.UID = size.class, types.UID(size.class)
		set.CreationTimestamp.Time = time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		set.Status.Replicas, set.Status.AvailableReplicas = size.machines, size.available
		in.Sets = append(in.Sets, set)
		for n := range size.machines {
			m := &v1alpha1.Machine{}
			m.Name, m.Labels = fmt.Sprintf("%s-%d", set.Name, n), set.Spec.Template.Labels
			m.UID = types.UID(m.Name)
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
			m.Spec, m.Status.CurrentStatus.Phase = set.Spec.Template.Spec, v1alpha1.MachineRunning
			if n >= size.available {
				m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
			}
			in.Machines = append(in.Machines, m)
		}
	}
	return in
}

func ExampleDecide() {
	in := exampleRollout(1, 0, exampleSize{"small", 3, 3})
	policy := deployment.Policy{Discourage: deployment.DiscourageNone}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decide(in, policy, now)
	for _, a := range dec.Actions {
		fmt.Println(a)
	}
	fmt.Println(dec.NextCheck.Sub(now))
	// Output:
	// create machineset md-5d94c: 1 replica (3 machines, 4 allowed)
	// 30s
}

func ExampleDecide_scaleDown() {
	in := exampleRollout(1, 0, exampleSize{"small", 3, 2}, exampleSize{"large", 2, 2})
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

func ExampleDecide_holds() {
	in := exampleRollout(1, 0, exampleSize{"small", 3, 3}, exampleSize{"large", 1, 0})
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
	d := exampleDeployment(1, 0)
	d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("-10%"))
	fmt.Println(deployment.BoundsOf(d))
	d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxSurge = 10, ptr.To(intstr.FromString("25%"))
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
	d := exampleDeployment(1, 0)
	d.Spec.Strategy.RollingUpdate.MaxSurge = nil
	for _, err := range deployment.Validate(d) {
		fmt.Println(err)
	}
	// Output:
	// spec.strategy.rollingUpdate.maxSurge: Required value: unable to convert maxSurge to int32
}

func ExampleDecide_replicas() {
	in := exampleRollout(1, 0, exampleSize{"small", 4, 4}, exampleSize{"large", 2, 2})
	in.Deployment.Spec.Paused, in.Deployment.Spec.Replicas = true, 2
	for _, t := range deployment.Decide(in, deployment.Policy{Discourage: deployment.DiscourageNone}, time.Now()).Targets {
		fmt.Println(t)
	}
	// Output:
	// small 4 -> 1 without small-0, small-1, small-2: 4 > 1 for 2 replicas
	// large 2 -> 2: sized for 2 replicas
}

func ExamplePolicy_gates() {
	in := exampleRollout(0, 1, exampleSize{"small", 3, 3}, exampleSize{"large", 0, 0})
	notLeader := func(c deployment.Choice) (bool, machinist.Hold) {
		if strings.HasSuffix(c.Machine.Name, "-0") {
			return false, machinist.Hold{Reason: "Leader", Message: "it leads the quorum", Until: c.Now.Add(time.Minute)}
		}
		return true, machinist.Hold{}
	}
	policy := deployment.Policy{Gates: []func(deployment.Choice) (bool, machinist.Hold){notLeader}, Discourage: deployment.DiscourageNone}
	dec := deployment.Decide(in, policy, time.Now())
	for _, t := range dec.Targets {
		fmt.Println(t)
	}
	for _, h := range dec.Holds {
		fmt.Println(h)
	}
	// Output:
	// small 3 -> 2 without small-1: 2 machines available, minimum 2
	// large 0 -> 0
	// machineset/large: SurgeUsedUp: 3 machines >= 3 replicas + 0 max surge
	// machine/small-0: Gate: Leader: it leads the quorum
}

func ExampleScaleDown() {
	next, err := deployment.ScaleDown(exampleDeployment(1, 0), []string{"w-a-2"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println(next.Spec.Replicas, err)
	fmt.Println(next.Annotations[v1alpha1.TriggerDeletionByMCM])
	// Output:
	// 2 <nil>
	// w-a-2~2026-03-01T12:00:00Z
}
