// SPDX-License-Identifier: Apache-2.0

// Package machineset decides which machines of a MachineSet are created, deleted and kept:
// [Decide] returns a [Decision] from an [Observation], and [Status] the status of the set.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//		"github.com/machinist-dev/machinist/machineset"
//	)
//
//	func main() {
//		labels := map[string]string{"pool": "a"}
//		set := &v1alpha1.MachineSet{} // read it from the API server
//		set.Name, set.UID, set.Finalizers = "workers", "1", []string{v1alpha1.MCMFinalizerName}
//		set.Spec.Replicas = 3
//		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
//		set.Spec.Template.Labels = labels
//		set.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
//		in := machineset.Observation{Set: set, Complete: true, Proven: true}
//		fmt.Println(machineset.Decide(in, machineset.Policy{}, time.Now()))
//	}
//
// A controller reads the set, calls [Claim] to find its machines, and writes adoptions and
// releases. It then calls Decide, and carries out the actions. It records creations and deletions
// in [machine.Expectations] before the requests. At the end it writes the status, and decides again
// at [Decision.NextCheck] or when an object changes.
//
// # What is guaranteed
//
// By its own decisions a set never has more machines than it wants, however stale its cache is,
// and whichever requests fail. Machines that are being deleted do not count; they are replaced
// at once. If another client removes the labels of machines, 3 of them are replaced. A
// scale-down by k deletes k machines, besides Failed ones that are replaced. On an incomplete
// list nothing is created or deleted.
//
// # Choosing
//
// A scale-down deletes the machines that an autoscaler named, then those that the annotation
// machinist.dev/delete-first names, then the first by [Policy.Order]. Package deployment counts and
// chooses by the same rules, so it knows what its sets will do.
package machineset
