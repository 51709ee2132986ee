// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// AutoPreserve decides which Failed machines a set preserves of its own accord,
// and of which it takes that back. The capacity is how many more the set may
// preserve than it does; nothing changes if it is 0.
//
//   - If it is positive, so many machines are granted it, the youngest first: of
//     those that are Failed, are not leaving, say nothing about preservation
//     themselves (none of the four values, so nonsense counts as nothing), have no
//     preservation recorded, and whose Node does not overrule them. Of a machine
//     whose Node nobody has looked at, that is not known, so it is passed over.
//   - If it is negative, so many machines have it revoked, the oldest first: of
//     those that were granted it and are not leaving, in whatever phase.
//
// Ties are broken by name, then UID. Whether a machine is preserved, and for how
// long, is up to the machine controller, which reads the annotation. Nil machines
// and those without a UID are skipped.
func AutoPreserve(machines []*v1alpha1.Machine, nodes map[string]machine.NodeView, capacity int) (grant, revoke []*v1alpha1.Machine) {
	for _, m := range machines {
		switch {
		case m == nil || m.UID == "" || Leaving(m):
		case capacity > 0 && mayBeGranted(m, nodes[m.Labels[v1alpha1.NodeLabelKey]]):
			grant = append(grant, m)
		case capacity < 0 && AutoPreserved(m):
			revoke = append(revoke, m)
		}
	}
	byAge := func(a, b *v1alpha1.Machine) int {
		return a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time)
	}
	byName := func(a, b *v1alpha1.Machine) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}
	slices.SortFunc(grant, func(a, b *v1alpha1.Machine) int { return cmp.Or(byAge(b, a), byName(a, b)) })
	slices.SortFunc(revoke, func(a, b *v1alpha1.Machine) int { return cmp.Or(byAge(a, b), byName(a, b)) })
	return grant[:min(len(grant), max(0, capacity))], revoke[:min(len(revoke), max(0, -capacity))]
}

// mayBeGranted reports whether the annotation would make the machine controller
// preserve this machine, which says nothing about preservation itself.
func mayBeGranted(m *v1alpha1.Machine, node machine.NodeView) bool {
	switch m.Annotations[v1alpha1.PreserveMachineAnnotationKey] {
	case v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse:
		return false
	}
	if !Failed(m) || PreservedFailed(m) || nodeUnknown(m, node) {
		return false
	}
	granted := *m
	granted.Annotations = maps.Clone(m.Annotations)
	metav1.SetMetaDataAnnotation(&granted.ObjectMeta, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValuePreservedByMCM)
	value, known := machine.PreserveValue(&granted, node)
	return known && value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
}
