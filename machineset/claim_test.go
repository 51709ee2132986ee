// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestClaim_AdoptAndRelease_KeepForeignOwners asserts that owners of others stay. MCM sends a list
// with one entry, so that adoption removes them and a release keeps its own (DS-22).
func TestClaim_AdoptAndRelease_KeepForeignOwners(t *testing.T) {
	set := newSet(1)
	self := controlledBy(set)[0]
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "cm", UID: "uid-cm"}
	uncontrolled := self
	uncontrolled.Controller = new(bool)
	released := map[string]string{releasedAnnotation: "uid-ms"}
	type owners = []metav1.OwnerReference
	for name, c := range map[string]struct {
		label        string
		before, want owners
		annotations  map[string]string
	}{
		"orphan":             {"w", owners{foreign, uncontrolled}, owners{foreign, self}, nil},
		"drifted":            {"other", owners{self, foreign}, owners{foreign}, released},
		"drifted, no others": {"other", owners{self}, owners{}, released},
	} {
		m := newMachine(name, v1alpha1.MachineRunning)
		m.ResourceVersion, m.Labels, m.Annotations, m.OwnerReferences = "7", map[string]string{"app": c.label}, nil, c.before
		seen := m.DeepCopy()
		claims := machineset.Claim(set, []*v1alpha1.Machine{nil, m})
		require.Empty(t, claims.Owned)
		require.False(t, claims.Settled())
		updates := slices.Concat(claims.Adopt, claims.Release)
		require.Len(t, updates, 1)
		require.Equal(t, c.label != "w", len(claims.Release) == 1)
		require.Same(t, m, updates[0].Before)
		require.True(t, updates[0].Unchanged)
		require.Empty(t, cmp.Diff(seen, m), "the observed object stays")
		seen.OwnerReferences, seen.Annotations = c.want, c.annotations
		require.Empty(t, cmp.Diff(seen, machineOf(updates[0])), name)
	}
}

// TestClaim_EmptySelector_NoAdoptionNoRelease asserts that a set whose selector selects nothing or cannot be
// read claims nothing, nor does another invalid set.
func TestClaim_EmptySelector_NoAdoptionNoRelease(t *testing.T) {
	owned, orphan := newMachine("owned", v1alpha1.MachineRunning), newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	machines := []*v1alpha1.Machine{owned, orphan}
	claims := func(edit func(s *v1alpha1.MachineSetSpec)) machineset.Claims[*v1alpha1.Machine] {
		set := newSet(1)
		edit(&set.Spec)
		return machineset.Claim(set, machines)
	}
	selecting := func(s *metav1.LabelSelector) func(*v1alpha1.MachineSetSpec) {
		return func(spec *v1alpha1.MachineSetSpec) { spec.Selector = s }
	}
	for name, edit := range map[string]func(s *v1alpha1.MachineSetSpec){
		"nil":                    selecting(nil),
		"empty":                  selecting(&metav1.LabelSelector{}),
		"empty map":              selecting(&metav1.LabelSelector{MatchLabels: map[string]string{}}),
		"unparsable":             selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c d"}}),
		"bad operand":            selecting(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}),
		"selector of others":     func(s *v1alpha1.MachineSetSpec) { s.Selector.MatchLabels = map[string]string{"app": "other"} },
		"template without label": func(s *v1alpha1.MachineSetSpec) { s.Template.Labels = nil },
		"negative replicas":      func(s *v1alpha1.MachineSetSpec) { s.Replicas = -1 },
	} {
		c := claims(edit)
		require.Equal(t, []*v1alpha1.Machine{owned}, c.Owned, name)
		require.True(t, c.Settled(), name)
		require.Nil(t, c.Selector, name)
	}
	require.Len(t, claims(func(*v1alpha1.MachineSetSpec) {}).Adopt, 1)
}

func TestClaim_NoUIDOrOtherNamespace_IsIgnored(t *testing.T) {
	claims := func(set *v1alpha1.MachineSet, bend func(m *v1alpha1.Machine)) machineset.Claims[*v1alpha1.Machine] {
		m := newMachine("m", v1alpha1.MachineRunning)
		m.OwnerReferences = nil
		bend(m)
		return machineset.Claim(set, []*v1alpha1.Machine{m})
	}
	require.Len(t, claims(newSet(1), func(*v1alpha1.Machine) {}).Adopt, 1)
	for name, bend := range map[string]func(m *v1alpha1.Machine){
		"another namespace":  func(m *v1alpha1.Machine) { m.Namespace = "elsewhere" },
		"no UID":             func(m *v1alpha1.Machine) { m.UID = "" },
		"being deleted":      func(m *v1alpha1.Machine) { m.DeletionTimestamp = deletedNow() },
		"another controller": func(m *v1alpha1.Machine) { m.OwnerReferences = machineFrom("x.foreign").OwnerReferences },
	} {
		require.Equal(t, machineset.Claims[*v1alpha1.Machine]{Selector: newSet(1).Spec.Selector}, claims(newSet(1), bend), name)
	}
	deleted, unknown := newSet(1), newSet(1)
	deleted.DeletionTimestamp, unknown.UID = deletedNow(), ""
	for _, set := range []*v1alpha1.MachineSet{deleted, unknown} {
		require.Equal(t, machineset.Claims[*v1alpha1.Machine]{Selector: set.Spec.Selector}, claims(set, func(*v1alpha1.Machine) {}))
	}
	require.Equal(t, machineset.Claims[*v1alpha1.Machine]{}, claims(nil, func(*v1alpha1.Machine) {}))
}
