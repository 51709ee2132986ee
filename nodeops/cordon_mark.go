// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cordonMarksAnnotation is the annotation that records which marks were set by cordons: a list
// of marks, separated by commas. Other marks are never removed.
const cordonMarksAnnotation = "machinist.dev/cordon-marks"

// mark is one thing on a Node that a [Cordon] sets.
type mark string

const (
	// markUnschedulable is spec.unschedulable.
	markUnschedulable = "unschedulable"
	// markExcluded is the label node.kubernetes.io/exclude-from-external-load-balancers.
	markExcluded = "exclude-from-external-load-balancers"
	// markOutOfService is the taint node.kubernetes.io/out-of-service with effect NoExecute.
	markOutOfService = "out-of-service"
	// taintMark is the prefix of a mark for a [Cordon.Taint] with effect NoSchedule.
	taintMark = "taint/"
	// excludedValue is the value that a cordon sets. Other writers set other values.
	excludedValue = "true"
)

// outOfService is the taint that Kubernetes documents for Nodes that are shut down.
var outOfService = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// marks returns the marks of the cordon, sorted.
func (f Cordon) marks() []string {
	marks := make([]string, 0, 3)
	if f.ExcludeFromLoadBalancers {
		marks = append(marks, markExcluded)
	}
	if f.OutOfService {
		marks = append(marks, markOutOfService)
	}
	if f.Taint != "" {
		return append(marks, taintMark+f.Taint)
	}
	return append(marks, markUnschedulable)
}

// isTaint reports whether the mark is the taint of an owner.
func (m mark) isTaint() bool { return strings.HasPrefix(string(m), taintMark) }

// known reports whether this package knows how to set the mark.
func (m mark) known() bool {
	return m == markUnschedulable || m == markExcluded || m == markOutOfService || m.isTaint()
}

// taint returns the taint of a mark.
func (m mark) taint() corev1.Taint {
	if m == markOutOfService {
		return outOfService
	}
	return corev1.Taint{Key: strings.TrimPrefix(string(m), taintMark), Effect: corev1.TaintEffectNoSchedule}
}

// on reports whether the mark is on the node, by any writer.
func (m mark) on(node *corev1.Node) bool {
	switch {
	case m == markUnschedulable:
		return node.Spec.Unschedulable
	case m == markExcluded:
		_, on := node.Labels[corev1.LabelNodeExcludeBalancers]
		return on
	case m.known():
		return HasTaint(node.Spec.Taints, m.taint())
	default:
		return true // a later version has set it
	}
}

// asSet reports whether the mark is on the node as a cordon sets it.
func (m mark) asSet(node *corev1.Node) bool {
	switch m {
	case markExcluded:
		return node.Labels[corev1.LabelNodeExcludeBalancers] == excludedValue
	case markOutOfService:
		return carriesTaint(node.Spec.Taints, &outOfService)
	default:
		return m.on(node)
	}
}

// set sets the mark on node.
func (m mark) set(node *corev1.Node, now time.Time) {
	switch {
	case m == markUnschedulable:
		node.Spec.Unschedulable = true
	case m == markExcluded:
		node.Labels = setKey(node.Labels, corev1.LabelNodeExcludeBalancers, excludedValue)
	case m == markOutOfService:
		taint := m.taint()
		taint.TimeAdded = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
		node.Spec.Taints, _ = SetTaint(node.Spec.Taints, taint)
	case m.known():
		node.Spec.Taints, _ = SetTaint(node.Spec.Taints, m.taint())
	}
}

// take removes the mark from node.
func (m mark) take(node *corev1.Node) {
	switch {
	case m == markUnschedulable:
		node.Spec.Unschedulable = false
	case m == markExcluded:
		delete(node.Labels, corev1.LabelNodeExcludeBalancers)
		if len(node.Labels) == 0 {
			node.Labels = nil
		}
	case m.known():
		node.Spec.Taints, _ = RemoveTaint(node.Spec.Taints, m.taint())
	}
}

// markSet is a sorted list of marks without repetitions. Its methods never change it.
type markSet []string

// with returns the set with one more mark.
func (s markSet) with(m string) markSet {
	i, found := slices.BinarySearch(s, m)
	if found {
		return s
	}
	return slices.Insert(slices.Clone(s), i, m)
}

// whichStand returns the marks that are on the node as a cordon sets them.
func (s markSet) whichStand(node *corev1.Node) markSet {
	return slices.DeleteFunc(slices.Clone(s), func(m string) bool { return !mark(m).asSet(node) })
}

// cordonMarks returns the marks that cordons have set, as the annotation of the node records.
func cordonMarks(node *corev1.Node) markSet {
	var s markSet
	for m := range strings.SplitSeq(node.Annotations[cordonMarksAnnotation], ",") {
		if m = strings.TrimSpace(m); m != "" {
			s = s.with(m)
		}
	}
	return s
}

// release removes the marks that no claim holds from the node. It returns the other marks, and
// whether the node was changed.
func (s markSet) release(node *corev1.Node) (rest markSet, changed bool) {
	claims := Cordons(node)
	rest = slices.DeleteFunc(slices.Clone(s), func(m string) bool {
		held := slices.ContainsFunc(claims, func(c Claim) bool { return c.holds(m) })
		if held || !mark(m).known() {
			return false
		}
		mark(m).take(node)
		changed = true
		return true
	})
	return rest, changed
}

// store writes the set to the annotation of the node, and reports whether it changed.
func (s markSet) store(node *corev1.Node) bool {
	if slices.Equal(s, cordonMarks(node)) {
		return false
	}
	if len(s) == 0 {
		deleteAnnotation(node, cordonMarksAnnotation)
		return true
	}
	node.Annotations = setKey(node.Annotations, cordonMarksAnnotation, strings.Join(s, ","))
	return true
}

// deleteAnnotation removes an annotation from node.
func deleteAnnotation(node *corev1.Node, key string) {
	delete(node.Annotations, key)
	if len(node.Annotations) == 0 {
		node.Annotations = nil
	}
}
