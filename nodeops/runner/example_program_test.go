// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/nodeops/runner"
)

// templates are what each machine declares for its Node.
var templates = map[string]nodeops.Template{
	"machine-1": {
		Labels: map[string]string{"pool": "a"},
		Taints: []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}},
	},
}

// syncNode finds the machine of a Node and applies its template. It writes only if the Node differs.
func syncNode(ctx context.Context, client kubernetes.Interface, machines *nodeops.Index, name string) error {
	_, changed, err := runner.UpdateNode(ctx, client.CoreV1().Nodes(), name, func(node *corev1.Node) (bool, error) {
		match := machines.Match(node)
		fmt.Println(name, "matched by", match)
		if !match.Found() {
			return false, nil
		}
		change, err := nodeops.SyncTemplate(node, templates[match.Names[0]])
		if err != nil || change.Node == nil {
			return false, err
		}
		fmt.Println(change.Text)
		*node = *change.Node
		return true, nil
	})
	fmt.Println("changed:", changed)
	return err
}

// A controller finds the machine of a Node, and keeps the labels and taints of that machine on it.
func Example() {
	ctx := context.Background()
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{ProviderID: "cloud:///1"},
	})
	machines := nodeops.NewIndex([]nodeops.Candidate{{Name: "machine-1", ProviderID: "cloud:///1"}})
	for range 2 {
		if err := syncNode(ctx, client, machines, "node-1"); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// node-1 matched by ProviderID: machine-1
	// set labels pool; set taints dedicated=batch:NoSchedule; record what was applied
	// changed: true
	// node-1 matched by ProviderID: machine-1
	// changed: false
}
