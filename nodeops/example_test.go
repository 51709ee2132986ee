// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/nodeops"
)

// A condition is stored once; asking again with the same news changes nothing.
func ExampleSetCondition() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	condition := corev1.NodeCondition{Type: "Terminating", Status: corev1.ConditionTrue, Reason: "ScaleDown"}

	conditions, changed := nodeops.SetCondition(nil, condition, nodeops.OnStatusOrReason, now)
	fmt.Println(changed, conditions[0].LastTransitionTime.UTC().Format(time.TimeOnly))

	conditions, changed = nodeops.SetCondition(conditions, condition, nodeops.OnStatusOrReason, now.Add(time.Hour))
	fmt.Println(changed, conditions[0].LastTransitionTime.UTC().Format(time.TimeOnly))
	// Output:
	// true 12:00:00
	// false 12:00:00
}

func ExampleAddOrUpdateConditionsOnNode() {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	err := nodeops.AddOrUpdateConditionsOnNode(context.Background(), client, "worker-1", corev1.NodeCondition{
		Type: "Terminating", Status: corev1.ConditionTrue, Reason: "ScaleDown",
	})
	fmt.Println(err)

	condition, err := nodeops.GetNodeCondition(context.Background(), client, "worker-1", "Terminating")
	fmt.Println(condition.Status, condition.Reason, err)
	// Output:
	// <nil>
	// True ScaleDown <nil>
}

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

func ExampleParseTaint() {
	edit, err := nodeops.ParseTaint("dedicated=gpu:NoSchedule")
	fmt.Println(edit.Taint.Key, edit.Taint.Value, edit.Taint.Effect, err)

	_, err = nodeops.ParseTaint("dedicated=gpu")
	fmt.Println(err)
	// Output:
	// dedicated gpu NoSchedule <nil>
	// taint "dedicated=gpu": the effect is missing
}

// What was applied before and is wanted no longer goes; what others have set stays.
func ExampleSyncTemplate() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"set-by": "somebody-else"}}}

	node, change, _ := nodeops.SyncTemplate(node, nodeops.Template{Labels: map[string]string{"pool": "a", "zone": "1"}})
	fmt.Println(change)

	node, change, _ = nodeops.SyncTemplate(node, nodeops.Template{Labels: map[string]string{"pool": "b"}})
	fmt.Println(change)
	fmt.Println(node.Labels)
	// Output:
	// set labels pool, zone; record what was applied
	// set labels pool; remove labels zone; record what was applied
	// map[pool:b set-by:somebody-else]
}

func ExampleMatch() {
	machines := []nodeops.Candidate{
		{Name: "machine-1", NodeName: "ip-10-0-0-1", ProviderID: "aws:///eu-west-1a/i-0aaa"},
		{Name: "machine-2", ProviderID: "aws:///eu-west-1a/i-0bbb"}, // does not know its node yet
	}
	node := func(name, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	fmt.Println(nodeops.Match(node("ip-10-0-0-1", "aws:///eu-west-1a/i-0aaa"), machines))
	fmt.Println(nodeops.Match(node("ip-10-0-0-2", "aws://eu-west-1a/i-0bbb"), machines))
	fmt.Println(nodeops.Match(node("ip-10-0-0-3", "aws:///eu-west-1a/i-0ccc"), machines))
	// The name of machine-1's node, on another instance.
	fmt.Println(nodeops.Match(node("ip-10-0-0-1", "aws:///eu-west-1a/i-0ddd"), machines))
	// Output:
	// NodeName: machine-1
	// ProviderID: machine-2
	// NoMatch
	// Contradiction: machine-1
}

func ExampleNewIndex() {
	index := nodeops.NewIndex([]nodeops.Candidate{{Name: "machine-1", NodeName: "worker-1"}})
	result := index.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	if result.Found() {
		fmt.Println("it belongs to", result.Names[0])
	}
	// Output:
	// it belongs to machine-1
}
