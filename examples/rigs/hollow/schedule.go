// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// binding is a pod and the Node that it is bound to.
type binding struct {
	pod  *corev1.Pod
	node string
}

// schedule returns the bindings of waiting pods, the oldest first. A pod gets the fitting Node with
// the fewest pods, the first by name among equals. The pods in bound count for the given Nodes.
func schedule(nodes []*corev1.Node, pods []*corev1.Pod, bound map[types.UID]string) []binding {
	load := map[string]int{}
	var waiting []*corev1.Pod
	for _, p := range pods {
		switch on := cmp.Or(p.Spec.NodeName, bound[p.UID]); {
		case hasEnded(p):
		case on != "":
			load[on]++
		case waits(p):
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	var out []binding
	for _, p := range waiting {
		best := ""
		for _, n := range nodes {
			if takes(n, p) && (best == "" || load[n.Name] < load[best]) {
				best = n.Name
			}
		}
		if best != "" {
			load[best]++
			out = append(out, binding{p, best})
		}
	}
	return out
}

// waits reports whether a pod waits for this scheduler.
func waits(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		(p.Spec.SchedulerName == "" || p.Spec.SchedulerName == corev1.DefaultSchedulerName)
}

// takes reports whether a pod fits a Node.
func takes(n *corev1.Node, p *corev1.Pod) bool {
	if n.DeletionTimestamp != nil || !isReady(n) {
		return false
	}
	taints := slices.Clone(n.Spec.Taints)
	if n.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(p, &taints[i]) {
			return false
		}
	}
	return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) && isRequired(n, p)
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func tolerates(p *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Logger{}, taint, false)
	})
}

// isRequired reports whether a Node meets the required node affinity of a pod, such as that of a
// DaemonSet pod.
func isRequired(n *corev1.Node, p *corev1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			matches(t.MatchExpressions, n.Labels) && isNamed(t.MatchFields, n.Name)
	})
}

// isNamed reports whether a name meets all field requirements. The name is the only supported
// field.
func isNamed(requirements []corev1.NodeSelectorRequirement, name string) bool {
	for _, r := range requirements {
		in := slices.Contains(r.Values, name)
		if r.Key != metav1.ObjectNameField || r.Operator == corev1.NodeSelectorOpIn != in || r.Operator == corev1.NodeSelectorOpNotIn == in {
			return false
		}
	}
	return true
}

// operators maps the operators of node selectors to those of label selectors.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// matches reports whether labels meet all requirements. An invalid requirement is not met.
func matches(requirements []corev1.NodeSelectorRequirement, values labels.Set) bool {
	for _, r := range requirements {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err != nil || !requirement.Matches(values) {
			return false
		}
	}
	return true
}
