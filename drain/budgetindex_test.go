// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBudgetIndex_ManyPodsAndBudgets_MatchesOneSelectorForEachPod asserts that a selector is
// matched for the pods that have its rarest label, not for every pod, and once for all pods with
// the same labels.
func TestBudgetIndex_ManyPodsAndBudgets_MatchesOneSelectorForEachPod(t *testing.T) {
	for _, n := range []int{100, 1000, 10000} {
		var budgets []*policyv1.PodDisruptionBudget
		for i := range n / 2 {
			budgets = append(budgets, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"a": "shop", "z": "web", "app": fmt.Sprint(i)},
				}},
			})
		}
		x := newBudgetIndex(All(budgets...))
		matched := 0
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"a": "shop", "z": "web", "app": fmt.Sprint(i % (n / 2))}}}
			matched += len(x.candidates(pod))
			require.Len(t, x.of(pod).budgets, 1)
			require.Equal(t, pod.Labels["app"], x.of(pod).budgets[0].Name)
		}
		require.Equal(t, n, matched, "of %d pods and %d budgets", n, n/2)
		require.Len(t, x.found, n/2)
	}
}
