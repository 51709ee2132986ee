// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// firstWait cancels a drain when it waits for a pod.
type firstWait struct{ cancel context.CancelFunc }

func (w firstWait) Observe(p drain.Progress) {
	if p.Type == drain.ProgressWaiting {
		fmt.Println(p)
		w.cancel()
	}
}

// exampleBlocked returns a Node with one pod, and a PodDisruptionBudget that never allows its
// eviction.
func exampleBlocked() []runtime.Object {
	labels := map[string]string{"app": "web"}
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-1", Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{NodeName: "node-1"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		},
	}
}

// Run returns when the drain or the context ends. The decision has the pods that the drain waits
// for, also with an error. Here the Observer cancels the context at the first wait.
func ExampleExecutor_Run() {
	cluster := draintest.New(draintest.Options{})
	if err := cluster.Add(exampleBlocked()...); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()

	executor := runner.Executor{Client: runner.NewClient(cluster.Client()), Observer: firstWait{cancel}}
	decision, err := executor.Run(ctx, "node-1", drain.Policy{})
	fmt.Println(decision.Over(), errors.Is(err, context.Canceled))
	for _, hold := range decision.Holds() {
		fmt.Println(hold.Subject, hold.Reason)
	}
	// Output:
	// Waiting pod/shop/web-1 (BudgetNeverAllows): budget shop/web never allows a disruption of so few pods, minAvailable is 1: 1 of 1 healthy, 1 desired
	// false true
	// pod/shop/web-1 BudgetNeverAllows
}
