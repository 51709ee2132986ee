// SPDX-License-Identifier: Apache-2.0

// Package deployment decides how a MachineDeployment replaces the machines of an old template
// by those of a new one: [Decide] returns a [Decision] from an [Observation] and a [Policy].
// [Decision.Reason] is [ReasonComplete], Progressing or Stuck, or says why there is no rollout.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/machinist-dev/machinist/deployment"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		labels := map[string]string{"pool": "a"}
//		d := &v1alpha1.MachineDeployment{} // read it from the API server, with its sets and machines
//		d.Name, d.UID, d.Finalizers = "workers", "1", []string{v1alpha1.MCMFinalizerName}
//		d.Spec.Replicas, d.Spec.Strategy.Type = 3, v1alpha1.RecreateMachineDeploymentStrategyType
//		d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
//		d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
//		in := deployment.Observation{Deployment: d, Complete: true, Proven: true}
//		fmt.Println(deployment.Decide(in, deployment.Policy{}, time.Now()))
//	}
//
// A controller claims the sets of the deployment with [Claim], and calls Decide with all sets and
// machines. It carries out each action in order, records its writes in [machine.Expectations], stores
// the status if [Decision.WriteStatus] is set, and decides again at [Decision.NextCheck] or when an object changes. [Decision.Target] returns
// the size of a set; a set without one is an error, never a size of 0.
//
// # Which machines are deleted
//
// When a set shrinks, the machines to delete are chosen here and named in the same write: first
// those that the user named, then by [Policy.Order], by default preserved machines last, then by
// priority and the mark of an autoscaler. Of those that are equal until there, machines that are not
// available are first. One of [Policy.Gates] may keep a machine.
//
// # What is guaranteed
//
// A deployment never has more machines than its replicas and maxSurge: a machine counts from the
// request for it until it is gone. A rollout makes no more machines unavailable than
// maxUnavailable allows: of observed and reported numbers the smaller one counts. Decide lists
// the exceptions. Everything that is not done is a [machinist.Hold] with its numbers.
//
// # Parts
//
// [BoundsOf], [Revisions], [Complete] and [Validate] can be used alone. [RollBack], [ScaleDown] and
// [Replace] decide what a user asks for. The page docs/rollouts.md answers questions about rollouts.
//
// The new set of a deployment is the oldest one whose template is equal to that of the deployment,
// apart from the template hash label, the node template, the machine configuration and the kind of the
// class, which change without a rollout.
package deployment
