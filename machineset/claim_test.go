// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// TestClaim_AdoptAndRelease_KeepForeignOwners asserts that owners of others stay. MCM sends a list
// with one entry, so that adoption removes them and a release keeps its own (DS-22).
func TestClaim_AdoptAndRelease_KeepForeignOwners(t *testing.T) {
	set := newSet(1)
	self := machineset.OwnerSet(set).Reference()
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "cm", UID: "uid-cm"}

	orphan := newMachine("orphan", v1alpha1.MachineRunning)
	orphan.ResourceVersion = "7"
	orphan.OwnerReferences = []metav1.OwnerReference{foreign, self}
	orphan.OwnerReferences[1].Controller = new(bool)
	drifted := newMachine("drifted", v1alpha1.MachineRunning)
	drifted.Labels = map[string]string{"app": "other"}
	drifted.OwnerReferences = []metav1.OwnerReference{self, foreign}

	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{orphan, nil, drifted})
	require.Empty(t, claims.Owned)
	require.False(t, claims.Settled())
	require.Len(t, claims.Adopt, 1)
	require.Len(t, claims.Release, 1)

	adopt, release := claims.Adopt[0], claims.Release[0]
	require.Equal(t, []metav1.OwnerReference{foreign, self}, machineOf(adopt).OwnerReferences)
	require.Equal(t, []metav1.OwnerReference{foreign}, machineOf(release).OwnerReferences)
	require.Equal(t, "uid-ms", machineOf(release).Annotations[releasedAnnotation])
	require.Equal(t, []metav1.OwnerReference{self, foreign}, drifted.OwnerReferences, "the observed object stays")
	require.NotContains(t, drifted.Annotations, releasedAnnotation)
	for seen, u := range map[*v1alpha1.Machine]machinist.Update{orphan: adopt, drifted: release} {
		require.True(t, u.Unchanged)
		require.Same(t, seen, u.Before)
		require.Equal(t, seen.ResourceVersion, machineOf(u).ResourceVersion)
	}
	drifted.OwnerReferences, drifted.Annotations = drifted.OwnerReferences[:1], nil
	claims = machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{drifted})
	require.Empty(t, machineOf(claims.Release[0]).OwnerReferences)
	require.Equal(t, map[string]string{releasedAnnotation: "uid-ms"}, machineOf(claims.Release[0]).Annotations)
}

func TestClaim_EmptySelector_NoAdoptionNoRelease(t *testing.T) {
	set := newSet(1)
	owned, orphan := newMachine("owned", v1alpha1.MachineRunning), newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	for name, selector := range map[string]*metav1.LabelSelector{
		"nil":         nil,
		"empty":       {},
		"empty map":   {MatchLabels: map[string]string{}},
		"unparsable":  {MatchLabels: map[string]string{"a b": "c d"}},
		"bad operand": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
	} {
		t.Run(name, func(t *testing.T) {
			claims := machineset.Claim(machineset.OwnerSet(set), selector, []*v1alpha1.Machine{owned, orphan})
			require.Equal(t, []*v1alpha1.Machine{owned}, claims.Owned)
			require.True(t, claims.Settled())
		})
	}
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

func TestClaimSelector_InvalidSet_ClaimsNothing(t *testing.T) {
	owned, orphan := newMachine("owned", v1alpha1.MachineRunning), newMachine("orphan", v1alpha1.MachineRunning)
	orphan.OwnerReferences = nil
	for name, edit := range map[string]func(s *v1alpha1.MachineSetSpec){
		"nil selector":                func(s *v1alpha1.MachineSetSpec) { s.Selector = nil },
		"selector of other labels":    func(s *v1alpha1.MachineSetSpec) { s.Selector.MatchLabels = map[string]string{"app": "other"} },
		"template without the labels": func(s *v1alpha1.MachineSetSpec) { s.Template.Labels = nil },
		"negative replicas":           func(s *v1alpha1.MachineSetSpec) { s.Replicas = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(1)
			machines := []*v1alpha1.Machine{owned, orphan}
			require.Len(t, machineset.Claim(machineset.OwnerSet(set), machineset.ClaimSelector(set), machines).Adopt, 1)
			edit(&set.Spec)
			claims := machineset.Claim(machineset.OwnerSet(set), machineset.ClaimSelector(set), machines)
			require.Equal(t, []*v1alpha1.Machine{owned}, claims.Owned)
			require.True(t, claims.Settled())
		})
	}
	require.Nil(t, machineset.ClaimSelector(nil))
}
