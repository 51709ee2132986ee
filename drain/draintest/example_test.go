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
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// The PodDisruptionBudget refuses the second eviction until another pod has replaced the first one.
func ExampleCluster() {
	ctx := context.Background()
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cluster := draintest.New(draintest.Options{Clock: clock})
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(30))},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			}},
		}
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	if err := cluster.Add(pod("web-1", "node-1"), pod("web-2", "node-1"), budget); err != nil {
		fmt.Println(err)
		return
	}
	pods := cluster.Client().CoreV1().Pods("shop")
	evict := func(name string) {
		err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}})
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			fmt.Println(name, "refused:", status.ErrStatus.Details.Causes[0].Message)
			return
		}
		fmt.Println(name, "evicted", err)
	}
	evict("web-1")
	evict("web-2")

	next := cluster.Tick()
	fmt.Println("web-1 is deleted in", next.Sub(clock.Now()))
	clock.SetTime(next)
	cluster.Tick()
	_ = cluster.Add(pod("web-3", "node-2"))
	evict("web-2")
	// Output:
	// web-1 evicted <nil>
	// web-2 refused: The disruption budget web needs 1 healthy pods and has 1 currently
	// web-1 is deleted in 30s
	// web-2 evicted <nil>
}
