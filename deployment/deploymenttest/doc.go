// SPDX-License-Identifier: Apache-2.0

// Package deploymenttest simulates the rollout of a MachineDeployment in virtual time: [New] returns
// a [World] with its sets, machines and Nodes, [World.Step] plays one pass and [World.Run] all of
// them. A [Model] says how long machines take and what fails.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/machinist-dev/machinist/deployment/deploymenttest"
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pool"}}
//		d.Spec.Replicas = 3
//		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}
//		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
//		d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
//		d.Spec.Strategy.Type = v1alpha1.RecreateMachineDeploymentStrategyType
//		w, err := deploymenttest.New(d, deploymenttest.Model{})
//		if err != nil {
//			panic(err)
//		}
//		w.Run(time.Hour) // creates the machines
//		begin := w.Now()
//		err = w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" })
//		w.Run(time.Hour)
//		fmt.Println(w.Decision().Reason, w.Now().Sub(begin), err)
//	}
//
// [deployment.Decide] decides about the deployment, and [machineset.Decide] about its sets.
//
// In between, users and other clients may change whatever they like: see
// [World.Edit], [World.DeleteMachine], [World.SetPhase] and the others.
//
// # What is like the real thing
//
// Objects have resource versions, generations, UIDs and finalizers, and writes are
// refused as an API server refuses them: a stale version or another UID is a
// conflict, a name that is taken is taken, what is being deleted takes no new
// finalizer and goes with its last one. The controllers are thin loops as those of
// the examples: they claim, decide, act, and store the status; they keep
// [machine.Expectations]. With Model.Lag, Idle and Call their caches lag
// behind, turns are missed, calls fail, and processes end and start again.
//
// # What is not
//
// Machines follow a few timers and no provider. Pods, drains and preservation
// do not exist: a drain takes no time of its own. Only the controllers
// delete objects, also those that have lost their owner. Objects are whatever Go values were written; they
// have not been through JSON.
//
// Nothing here reads a clock, starts a goroutine or makes random numbers: two runs
// with the same model are the same. A step costs time in proportion to the machines
// of the sets that have something to do.
package deploymenttest
