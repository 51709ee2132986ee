// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// A Node that has had no machine for 20 minutes is marked.
func ExampleStepUnmanaged() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := safety.UnmanagedObservation{
		Nodes:    []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.NewTime(now)}}},
		Machines: []*v1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}},
		Complete: true,
	}
	policy := safety.UnmanagedPolicy{Timeout: 20 * time.Minute}
	state, d := safety.StepUnmanaged(safety.UnmanagedState{}, in, policy, now)
	fmt.Println(d)
	_, d = safety.StepUnmanaged(state, in, policy, d.NextCheck)
	fmt.Println(d)
	// Output:
	// nothing; waits for node/n1: NodeTooYoung: it has no machine and is marked at the age of 20m0s
	// update node n1: marked; it has had no machine for 20m0s
}
