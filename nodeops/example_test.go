// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// A condition is added to a Node, or replaces the one of its type.
func ExampleCloneAndAddCondition() {
	var conditions []corev1.NodeCondition
	for _, reason := range []string{"ScaleDown", "Unhealthy"} {
		conditions = nodeops.CloneAndAddCondition(conditions, corev1.NodeCondition{
			Type: "Terminating", Status: corev1.ConditionTrue, Reason: reason,
		})
		fmt.Println(len(conditions), conditions[0].Reason)
	}
	// Output:
	// 1 ScaleDown
	// 1 Unhealthy
}

// A taint is set once.
func ExampleSetTaint() {
	preserved := corev1.Taint{Key: "node.machine.sapcloud.io/preserved", Effect: corev1.TaintEffectNoSchedule}

	taints, changed := nodeops.SetTaint(nil, preserved)
	fmt.Println(len(taints), changed)

	taints, changed = nodeops.SetTaint(taints, preserved)
	fmt.Println(len(taints), changed)
	// Output:
	// 1 true
	// 1 false
}

// Labels that were applied before and are no longer in the template are removed. Labels of other
// writers stay.
func ExampleSyncTemplate() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"set-by": "another"}}}

	change, _ := nodeops.SyncTemplate(node, nodeops.Template{Labels: map[string]string{"pool": "a", "zone": "1"}})
	fmt.Println(change.Text)

	change, _ = nodeops.SyncTemplate(change.Node, nodeops.Template{Labels: map[string]string{"pool": "b"}})
	fmt.Println(change.Text)
	fmt.Println(change.Node.Labels)
	// Output:
	// set labels pool, zone; record what was applied
	// set labels pool; remove labels zone; record what was applied
	// map[pool:b set-by:another]
}

// A Node belongs to the machine that recorded its name, or that has its provider ID.
func ExampleIndex() {
	machines := nodeops.NewIndex([]nodeops.Candidate{
		{Name: "machine-1", NodeName: "ip-10-0-0-1", ProviderID: "aws:///eu-west-1a/i-0aaa"},
		{Name: "machine-2", ProviderID: "aws:///eu-west-1a/i-0bbb"}, // its Node is not recorded yet
	})
	node := func(name, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	fmt.Println(machines.Match(node("ip-10-0-0-1", "aws:///eu-west-1a/i-0aaa")))
	fmt.Println(machines.Match(node("ip-10-0-0-2", "aws://eu-west-1a/i-0bbb")))
	fmt.Println(machines.Match(node("ip-10-0-0-3", "aws:///eu-west-1a/i-0ccc")))
	// This Node has the name of the Node of machine-1, and another instance.
	fmt.Println(machines.Match(node("ip-10-0-0-1", "aws:///eu-west-1a/i-0ddd")))
	// Output:
	// NodeName: machine-1
	// ProviderID: machine-2
	// NoMatch
	// Contradiction: machine-1
}
