// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// A dry run reads each list that the policy needs once, and changes nothing.
func ExampleNewClient() {
	cluster := draintest.New(draintest.Options{})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	debug := web.DeepCopy()
	debug.Name = "debug"
	web.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}}
	if err := cluster.Add(node, web, debug); err != nil {
		fmt.Println(err)
		return
	}
	policy := drain.Policy{}
	in, err := runner.Observe(context.Background(), runner.NewClient(cluster.Client()), "node-1", policy, drain.State{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range drain.Decide(in, policy, time.Now()).Rows {
		fmt.Println(row.Action, row.Name, row.Reason)
	}
	// Output:
	// block debug Unmanaged
	// evict web Evictable
}
