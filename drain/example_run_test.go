// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// printer prints the progress of a drain.
type printer struct{}

func (printer) Observe(p drain.Progress) { fmt.Println(p) }

// exampleNode returns a Node with one pod of a ReplicaSet and one pod of a DaemonSet.
func exampleNode() []runtime.Object {
	pod := func(name, ownerKind string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: ownerKind, Name: "owner", UID: types.UID("uid-of-" + ownerKind), Controller: ptr.To(true),
		}}
		p.Spec.NodeName = "node-1"
		return p
	}
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-of-DaemonSet"}},
		pod("web", "ReplicaSet"), pod("agent", "DaemonSet"),
	}
}

// Run drains a Node in one call. It returns when the pods are gone.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// The cluster is in memory, and its pods stop at once. Use kubernetes.NewForConfig instead.
	cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 0 }})
	if err := cluster.Add(exampleNode()...); err != nil {
		fmt.Println(err)
		return
	}
	go cluster.Run(ctx)

	executor := runner.Executor{Client: runner.NewClient(cluster.Client()), Observer: printer{}}
	decision, err := executor.Run(ctx, "node-1", drain.Policy{})
	fmt.Println(decision.Outcome, err)
	for _, row := range decision.Rows {
		fmt.Println(row)
	}
	// Output:
	// Started node/node-1
	// Cordoned node/node-1
	// Requested pod/shop/web to evict (Evictable)
	// Gone pod/shop/web (Gone)
	// Ended node/node-1 (Drained)
	// Drained <nil>
	// ignore shop/agent (Stays): its DaemonSet would create it again
}
