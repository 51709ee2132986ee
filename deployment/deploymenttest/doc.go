// SPDX-License-Identifier: Apache-2.0

// Package deploymenttest plays what becomes of a MachineDeployment, in virtual
// time: to predict a roll-out and to explain it, and to try a policy or a gate
// before machines depend on it.
//
// A [World] holds one deployment, its sets, machines and Nodes. The deployment is
// decided about by [deployment.Decide], its sets by [machineset.Decide], and a [Model]
// says how machines behave: how long they take to join, to leave and to be updated
// in place, and whether they can be created at all.
//
//	w, err := deploymenttest.New(d, deploymenttest.Model{})
//	w.Run(time.Hour)                // the machines come up
//	w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "new" })
//	for f, ok := w.Step(); ok; f, ok = w.Step() {
//		fmt.Println(f.At, f.Events, f.Decision, f.Sizes)
//	}
//	fmt.Println(w.Decision())       // complete, or what it waits for
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
