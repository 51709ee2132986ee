// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Covers says whether a budget covers a pod: the selector of a budget without one
// covers nothing, an empty one all pods of its namespace, and one that cannot be read
// nothing, as the API server does. Nil covers nothing and is not covered.
func Covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if budget == nil || pod == nil || budget.Namespace != pod.Namespace {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// budgetIndex finds the budgets of pods. The zero budgetIndex knows none.
type budgetIndex struct {
	all []budget // by namespace and name
	// those of the namespace that was asked for last
	namespace string
	there     []budget
	known     bool
	found     []*budget
}

// newBudgetIndex reads the budgets, of several copies of one the newest.
func newBudgetIndex(list List[*policyv1.PodDisruptionBudget]) budgetIndex {
	if len(list.Items) == 0 {
		return budgetIndex{}
	}
	items := slices.Clone(list.Items)
	slices.SortFunc(items, compareBudgets)
	all := make([]budget, 0, len(items))
	pairs := make([]labelPair, 0, len(items))
	for _, item := range items {
		if item == nil || len(all) > 0 && item.Namespace == all[len(all)-1].Namespace && item.Name == all[len(all)-1].Name {
			continue
		}
		b := budget{PodDisruptionBudget: item, version: item.Name + "@" + item.ResourceVersion, left: allowed(item)}
		if b.selector, pairs = compileSelector(item.Spec.Selector, pairs); b.selector == nil {
			b.pairs = pairs[len(pairs)-len(item.Spec.Selector.MatchLabels):]
		}
		all = append(all, b)
	}
	return budgetIndex{all: all}
}

// of returns the budgets that cover a pod, by name, until it is called again.
func (x *budgetIndex) of(pod *corev1.Pod) []*budget {
	if len(x.all) == 0 {
		return nil
	}
	if !x.known || x.namespace != pod.Namespace {
		from, _ := slices.BinarySearchFunc(x.all, pod.Namespace, func(b budget, ns string) int { return cmp.Compare(b.Namespace, ns) })
		to := from
		for to < len(x.all) && x.all[to].Namespace == pod.Namespace {
			to++
		}
		x.known, x.namespace, x.there = true, pod.Namespace, x.all[from:to]
	}
	x.found = x.found[:0]
	for i := range x.there {
		if b := &x.there[i]; b.covers(pod) {
			x.found = append(x.found, b)
		}
	}
	return x.found
}

// labelPair is a label that a pod must have.
type labelPair struct{ key, value string }

// compileSelector appends the labels of a selector that consists of nothing else, and
// returns any other as it is. A label that cannot be read is on no pod.
func compileSelector(s *metav1.LabelSelector, pairs []labelPair) (labels.Selector, []labelPair) {
	if s == nil || len(s.MatchExpressions) > 0 {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			selector = labels.Nothing()
		}
		return selector, pairs
	}
	for key, value := range s.MatchLabels {
		pairs = append(pairs, labelPair{key, value})
	}
	return nil, pairs
}

// covers says whether the budget covers a pod of its namespace.
func (b *budget) covers(pod *corev1.Pod) bool {
	if b.selector != nil {
		return b.selector.Matches(labels.Set(pod.Labels))
	}
	for _, pair := range b.pairs {
		if value, has := pod.Labels[pair.key]; !has || value != pair.value {
			return false
		}
	}
	return true
}

// versions identifies budgets and how they are now.
func versions(budgets []*budget) string {
	switch len(budgets) {
	case 0:
		return ""
	case 1:
		return budgets[0].version
	}
	all := make([]string, len(budgets))
	for i, b := range budgets {
		all[i] = b.version
	}
	return strings.Join(all, ",")
}

// compareBudgets orders budgets by name, and copies of one the newest first, of those
// the one that allows least. Nil comes last.
func compareBudgets(a, b *policyv1.PodDisruptionBudget) int {
	if a == nil || b == nil {
		return nilLast(a == nil, b == nil)
	}
	if order := cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		compareVersions(b.ResourceVersion, a.ResourceVersion),
		cmp.Compare(a.Status.DisruptionsAllowed, b.Status.DisruptionsAllowed),
		cmp.Compare(a.Status.ObservedGeneration, b.Status.ObservedGeneration),
	); order != 0 || a == b {
		return order
	}
	return cmp.Compare(a.String(), b.String()) // two that claim to be the same
}

func nilLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
