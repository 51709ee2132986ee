// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// Two pods may not go at once: the budget refuses the second until the first has been replaced.
func ExampleCluster() {
	ctx := context.Background()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cluster := draintest.New(draintest.Options{Clock: clock})
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64(30))},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			}},
		}
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	if err := cluster.Add(pod("web-1", "node-1"), pod("web-2", "node-1"), budget); err != nil {
		fmt.Println(err)
	}
	pods := cluster.Client().CoreV1().Pods("shop")
	evict := func(name string) {
		err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}})
		if status, refused := errors.AsType[*apierrors.StatusError](err); refused {
			fmt.Println(name, "stays:", status.ErrStatus.Details.Causes[0].Message)
			return
		}
		fmt.Println(name, "goes", err)
	}
	evict("web-1")
	evict("web-2")

	next := cluster.Tick()
	fmt.Println("web-1 ends in", next.Sub(clock.Now()))
	clock.SetTime(next)
	cluster.Tick()
	_ = cluster.Add(pod("web-3", "node-2"))
	evict("web-2")
	// Output:
	// web-1 goes <nil>
	// web-2 stays: The disruption budget web needs 1 healthy pods and has 1 currently
	// web-1 ends in 30s
	// web-2 goes <nil>
}

// The first update of a node fails with an injected conflict.
func ExampleCluster_Inject() {
	ctx := context.Background()
	cluster := draintest.New(draintest.Options{})
	_ = cluster.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	cluster.Inject(draintest.Fault{Kind: draintest.Conflict, Verb: "update", Resource: "nodes", Times: 1})

	nodes := cluster.Client().CoreV1().Nodes()
	for range 2 {
		node, err := nodes.Get(ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		node.Spec.Unschedulable = true
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		fmt.Println("conflict:", apierrors.IsConflict(err))
	}
	for _, write := range cluster.History() {
		fmt.Println(write.Actor, write.Verb, write.Name)
	}
	// Output:
	// conflict: true
	// conflict: false
	// seed create node-1
	// client update node-1
}

// Any generated fake clientset can share the store: pass the address of its Fake. Here a bare one stands for it.
func ExampleCluster_Attach() {
	scheme := runtime.NewScheme()
	_ = k8sscheme.AddToScheme(scheme)
	scheme.AddKnownTypes(widgetGV, &Widget{}, &WidgetList{})
	cluster := draintest.New(draintest.Options{
		Scheme: scheme,
		Kinds:  []draintest.Kind{{GroupVersionKind: widgetGV.WithKind("Widget")}},
	})
	var customClientset struct{ clienttesting.Fake }
	cluster.Attach(&customClientset.Fake)

	sent := &Widget{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Status: WidgetStatus{Phase: "Ready"}}
	got, err := customClientset.Invokes(clienttesting.NewCreateAction(widgetGV.WithResource("widgets"), "ns", sent), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	created, ok := got.(*Widget)
	fmt.Println(ok, created.Namespace, created.Generation, created.Status.Phase == "")
	// Output:
	// true ns 1 true
}
