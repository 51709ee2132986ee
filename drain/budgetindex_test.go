// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// indexed returns so many pods and budgets of one namespace. Each budget covers an app by
// three labels, two of which all pods have.
func indexed(pods, apps int) ([]*corev1.Pod, List[*policyv1.PodDisruptionBudget]) {
	all, budgets := make([]*corev1.Pod, pods), List[*policyv1.PodDisruptionBudget]{Complete: true}
	for i := range all {
		all[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i), Labels: map[string]string{
			"a": "shop", "z": "web", "app": fmt.Sprint(i % apps), "index": fmt.Sprint(i),
		}}}
	}
	for i := range apps {
		budgets.Items = append(budgets.Items, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"a": "shop", "z": "web", "app": fmt.Sprint(i)},
			}},
		})
	}
	return all, budgets
}

// A selector is matched for the pods that have its rarest label, not for every pod.
func TestBudgetIndex_ManyPodsAndBudgets_MatchesOneSelectorForEachPod(t *testing.T) {
	for _, n := range []int{100, 1000, 10000} {
		pods, budgets := indexed(n, n/2)
		x := newBudgetIndex(budgets)
		matched := 0
		for _, pod := range pods {
			matched += len(x.candidates(pod))
			require.Len(t, x.of(pod).budgets, 1)
			require.Equal(t, pod.Labels["app"], x.of(pod).budgets[0].Name)
		}
		require.Equal(t, n, matched, "of %d pods and %d budgets", n, n/2)
	}
}

// Pods with the same labels share what was found for the first of them.
func TestBudgetIndex_SameLabels_AreLookedUpOnce(t *testing.T) {
	pods, budgets := indexed(1000, 10)
	x := newBudgetIndex(budgets)
	for _, pod := range pods {
		delete(pod.Labels, "index")
		require.NotEmpty(t, x.of(pod).budgets)
	}
	require.Len(t, x.found, 10)
}

// The index finds what the API server says of every pod and every budget, in the order of names.
func TestBudgetIndex_AnySelectors_FindsWhatCoversSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seed
	label := func() (key, value string) { return string(rune('a' + r.IntN(3))), string(rune('0' + r.IntN(3))) }
	for range 2000 {
		var budgets []*policyv1.PodDisruptionBudget
		for i := range r.IntN(8) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(r.IntN(2)), Name: fmt.Sprint(i)}}
			if r.IntN(8) > 0 {
				b.Spec.Selector = &metav1.LabelSelector{}
			}
			for range r.IntN(3) * min(1, r.IntN(8)) {
				if key, value := label(); b.Spec.Selector != nil {
					metav1.AddLabelToSelector(b.Spec.Selector, key, value)
				}
			}
			if b.Spec.Selector != nil && r.IntN(2) == 0 {
				key, value := label()
				operators := []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Bogus"}
				e := metav1.LabelSelectorRequirement{Key: key, Operator: operators[r.IntN(5)]}
				if e.Operator == "In" || e.Operator == "NotIn" {
					e.Values = []string{value, "2"}[:1+r.IntN(2)]
				}
				b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions, e)
			}
			budgets = append(budgets, b)
		}
		x := newBudgetIndex(All(budgets...))
		for range 8 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(r.IntN(2)), Labels: map[string]string{}}}
			for range r.IntN(4) {
				key, value := label()
				pod.Labels[key] = value
			}
			var want, got []string
			for _, b := range budgets {
				if covers(b, pod) {
					want = append(want, b.Name)
				}
			}
			for _, b := range x.of(pod).budgets {
				got = append(got, b.Name)
			}
			slices.Sort(want)
			require.Equal(t, want, got, "%v of %v", pod.Labels, budgets)
		}
	}
}

// A message names a few of the budgets that cover a pod together, and counts the others.
func TestCoverage_ManyBudgetsOverlap_MessageNamesSome(t *testing.T) {
	c := coverage{}
	for i := range 1000 {
		c.budgets = append(c.budgets, &budget{PodDisruptionBudget: &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("b", i)},
		}})
	}
	require.Equal(t, "budgets shop/b0 and shop/b1 and shop/b2 and shop/b3 and shop/b4 and 995 more cover it together, which the API server refuses", c.overlapping())
}

// covers reports whether a budget covers a pod, as the API server decides: a selector that
// cannot be read covers nothing.
func covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels))
}
