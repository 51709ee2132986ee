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
	self := machineset.OwnerSet(set).Reference()
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
		claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{nil, m})
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

// TestClaim_EmptySelector_NoAdoptionNoRelease asserts that a selector that selects nothing or cannot be read
// claims nothing, nor does that of an invalid set.
func TestClaim_EmptySelector_NoAdoptionNoRelease(t *testing.T) {
	owned, orphan := newMachine("owned", v1alpha1.MachineRunning), newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	machines := []*v1alpha1.Machine{owned, orphan}
	ofSet := func(edit func(s *v1alpha1.MachineSetSpec)) *metav1.LabelSelector {
		set := newSet(1)
		edit(&set.Spec)
		return machineset.ClaimSelector(set)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"nil":         nil,
		"empty":       {},
		"empty map":   {MatchLabels: map[string]string{}},
		"unparsable":  {MatchLabels: map[string]string{"a b": "c d"}},
		"bad operand": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},

		"no set":                             machineset.ClaimSelector(nil),
		"set without selector":               ofSet(func(s *v1alpha1.MachineSetSpec) { s.Selector = nil }),
		"set with a selector of others":      ofSet(func(s *v1alpha1.MachineSetSpec) { s.Selector.MatchLabels = map[string]string{"app": "other"} }),
		"set whose template lacks the label": ofSet(func(s *v1alpha1.MachineSetSpec) { s.Template.Labels = nil }),
		"set with negative replicas":         ofSet(func(s *v1alpha1.MachineSetSpec) { s.Replicas = -1 }),
	} {
		claims := machineset.Claim(machineset.OwnerSet(newSet(1)), selector, machines)
		require.Equal(t, []*v1alpha1.Machine{owned}, claims.Owned, name)
		require.True(t, claims.Settled(), name)
	}
	valid := ofSet(func(*v1alpha1.MachineSetSpec) {})
	require.Len(t, machineset.Claim(machineset.OwnerSet(newSet(1)), valid, machines).Adopt, 1)
}

func TestClaim_NoUIDOrOtherNamespace_IsIgnored(t *testing.T) {
	set := newSet(1)
	claims := func(owner machineset.Owner, bend func(m *v1alpha1.Machine)) machineset.Claims[*v1alpha1.Machine] {
		m := newMachine("m", v1alpha1.MachineRunning)
		m.OwnerReferences = nil
		bend(m)
		return machineset.Claim(owner, set.Spec.Selector, []*v1alpha1.Machine{m})
	}
	require.Len(t, claims(machineset.OwnerSet(set), func(*v1alpha1.Machine) {}).Adopt, 1)
	for name, bend := range map[string]func(m *v1alpha1.Machine){
		"another namespace": func(m *v1alpha1.Machine) { m.Namespace = "elsewhere" },
		"no UID":            func(m *v1alpha1.Machine) { m.UID = "" },
		"being deleted":     func(m *v1alpha1.Machine) { m.DeletionTimestamp = deletedNow() },
		"another controller": func(m *v1alpha1.Machine) {
			m.OwnerReferences = newMachine("x", "").OwnerReferences
			m.OwnerReferences[0].UID = "y"
		},
	} {
		require.Equal(t, machineset.Claims[*v1alpha1.Machine]{}, claims(machineset.OwnerSet(set), bend), name)
	}
	require.Equal(t, machineset.Claims[*v1alpha1.Machine]{}, claims(machineset.OwnerSet(nil), func(*v1alpha1.Machine) {}))
}

func TestClaim_Deployment_OwnsSets(t *testing.T) {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md", Namespace: "ns", UID: "uid-md"}}
	orphan := newSet(1)
	orphan.Labels = map[string]string{"app": "w"}
	claims := machineset.Claim(machineset.OwnerDeployment(d), orphan.Spec.Selector, []*v1alpha1.MachineSet{orphan, nil})
	require.Len(t, claims.Adopt, 1)
	owner := claims.Adopt[0].Object.(*v1alpha1.MachineSet).OwnerReferences[0]
	require.Equal(t, "MachineDeployment", owner.Kind)
	require.Equal(t, "machine.sapcloud.io/v1alpha1", owner.APIVersion)
	require.Equal(t, machineset.Owner{}, machineset.OwnerDeployment(nil))
}

func TestMayAdopt_LiveOwner_GoneReplacedDeleting(t *testing.T) {
	set := newSet(1)
	owner := machineset.OwnerSet(set)
	require.NoError(t, owner.MayAdopt(set))
	require.Error(t, owner.MayAdopt(nil))
	require.Error(t, owner.MayAdopt((*v1alpha1.MachineSet)(nil)))
	other := newSet(1)
	other.UID = "another"
	require.Error(t, owner.MayAdopt(other))
	deleting := newSet(1)
	deleting.DeletionTimestamp = &metav1.Time{Time: epoch}
	require.Error(t, owner.MayAdopt(deleting))
}
