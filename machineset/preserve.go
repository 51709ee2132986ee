// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// preserve returns the new preserve annotations, by UID; an empty value removes one. capacity is
// how many more Failed machines the set may preserve.
//
//   - If it is positive, that many of the staying machines are preserved, the youngest first: those
//     that are Failed, have no preserve annotation and no preserve expiry time, and whose Node does
//     not overrule them. A machine whose Node is unknown is skipped.
//   - If it is negative, that many of all machines are no longer preserved, the oldest first, in
//     any phase.
//
// The machine controller reads the annotation, and decides whether a machine is preserved and for
// how long.
func preserve(capacity int, all, staying []*v1alpha1.Machine, nodes map[string]machine.NodeView) map[types.UID]string {
	from, value, first := staying, v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, -1 // the youngest
	if capacity < 0 {
		from, value, first = all, "", 1
	}
	var fit []*v1alpha1.Machine
	for _, m := range from {
		switch {
		case m.UID == "" || members.Leaving(m):
		case capacity > 0 && mayBeGranted(m, nodes[m.Labels[v1alpha1.NodeLabelKey]]), capacity < 0 && members.AutoPreserved(m):
			fit = append(fit, m)
		}
	}
	slices.SortFunc(fit, func(a, b *v1alpha1.Machine) int {
		return cmp.Or(first*a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), members.CompareNames(a, b))
	})
	values := map[types.UID]string{}
	for _, m := range fit[:min(len(fit), max(capacity, -capacity))] {
		values[m.UID] = value
	}
	return values
}

// mayBeGranted reports whether the machine controller would preserve this machine because of the
// annotation. The machine has no annotation of its own.
func mayBeGranted(m *v1alpha1.Machine, node machine.NodeView) bool {
	switch m.Annotations[v1alpha1.PreserveMachineAnnotationKey] {
	case v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse:
		return false
	}
	if !members.Failed(m) || members.PreservedFailed(m) || nodeUnknown(m, node) {
		return false
	}
	granted := *m
	granted.Annotations = maps.Clone(m.Annotations)
	metav1.SetMetaDataAnnotation(&granted.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValuePreservedByMCM)
	value, known := facts.PreserveValue(&granted, node.Node, node.Looked, node.NoTarget)
	return known && value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
}
