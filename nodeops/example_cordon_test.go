// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// Two programs cordon a Node. It is schedulable again when both have removed their cordons.
func ExampleCordon() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}

	node, _, _ = nodeops.Cordon{Owner: "os-update", Reason: "kernel 7.1"}.Set(node, now)
	node, _, _ = nodeops.Cordon{Owner: "scale-down", Reason: "idle", ExcludeFromLoadBalancers: true}.Set(node, now.Add(time.Minute))
	for _, claim := range nodeops.Cordons(node) {
		fmt.Println(claim.Owner, claim.Marks, "since", claim.Since.Format(time.TimeOnly), claim.Reason)
	}
	node, _ = nodeops.Uncordon(node, "os-update")
	fmt.Println("unschedulable:", node.Spec.Unschedulable)
	node, _ = nodeops.Uncordon(node, "scale-down")
	fmt.Println("unschedulable:", node.Spec.Unschedulable)
	// Output:
	// os-update [unschedulable] since 12:00:00 kernel 7.1
	// scale-down [exclude-from-external-load-balancers unschedulable] since 12:01:00 idle
	// unschedulable: true
	// unschedulable: false
}

// A cordon that was set by a user stays.
func ExampleUncordon() {
	node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}
	node, _, _ = nodeops.Cordon{Owner: "os-update"}.Set(node, time.Time{})
	node, changed := nodeops.Uncordon(node, "os-update")
	fmt.Println(changed, node.Spec.Unschedulable)
	// Output:
	// true true
}

// A user uncordons a Node that a program has cordoned. [nodeops.Cordons] reports the difference.
func ExampleCordons() {
	node, _, _ := nodeops.Cordon{Owner: "os-update"}.Set(&corev1.Node{}, time.Time{})
	node.Spec.Unschedulable = false // kubectl uncordon
	for _, claim := range nodeops.Cordons(node) {
		fmt.Println(claim.Owner, "misses", claim.Missing)
	}
	// Output:
	// os-update misses [unschedulable]
}
