// SPDX-License-Identifier: Apache-2.0

// Package deploymenttest simulates the rollout of a MachineDeployment in virtual time: [New] returns
// a [World] with its sets, machines and Nodes, [World.Step] runs one pass and [World.Run] all of
// them. A [Model] defines how long machines take and what fails.
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
// Between steps, [World.Edit], [World.DeleteMachine], [World.SetPhase] and other methods change
// objects as users and other clients do.
//
// # Simulated
//
// Objects have resource versions, generations, UIDs and finalizers. Writes are refused as an API
// server refuses them: a stale resource version, another UID or an existing name is a conflict, and
// an object that is being deleted accepts no new finalizer. The controllers are loops as in
// examples/controllers: they claim, decide, act, and store the status, with
// [machine.Expectations]. With Model.Lag, Idle and Call their caches are stale, they miss turns,
// calls fail, and processes crash and restart.
//
// # Not simulated
//
// Machines follow timers, without a provider. Pods and preservation do not exist, and a drain takes
// no time. Only the controllers delete objects, including objects without an owner. Objects are not
// encoded as JSON.
//
// The package reads no clock, starts no goroutine and uses no random numbers: two runs with the same
// model are equal. The cost of a step is proportional to the machines of the sets that act.
package deploymenttest
