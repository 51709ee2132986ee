// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// crowd is the new set, which is all that is wanted, with machines of these kinds:
// a, b and so on.
func crowd(replicas int, size int32, kinds ...string) *updScene {
	s := newUpdScene(updDeployment(replicas, "0", "1", true), "c2", 0, size)
	for i, kind := range kinds {
		s.machine("new", string(rune('a'+i)), kind)
	}
	return s
}

// autoscaled says that an autoscaler named machines of the new set.
func (s *updScene) autoscaled(names ...string) {
	s.set("new").Annotations = scaled(s.set("new").Annotations)
	for _, name := range names {
		s.mark(name)
	}
}

func (s *updScene) named(set string, names ...string) { machineset.NameVictims(s.set(set), names) }

// sized says for how many replicas a set was sized, so that it is not sized anew.
func (s *updScene) sized(set, replicas string) {
	for _, key := range []string{v1alpha1.DesiredReplicasAnnotation, v1alpha1.MaxReplicasAnnotation} {
		s.set(set).Annotations[key] = replicas
	}
}

// A set asks for fewer machines than it has, as some have moved to it.
func TestInPlaceWhoIsNamedInPlaceOfMachinesThatHaveMoved(t *testing.T) {
	for name, c := range map[string]struct {
		scene func() *updScene
		names []string
	}{
		"one for each that has moved": {func() *updScene {
			s := crowd(1, 1, "moved", "moved", "Running")
			s.early("c", "b")
			return s
		}, []string{"b", "c"}},
		"no machine is named twice": {func() *updScene {
			s := crowd(1, 1, "moved", "moved", "Running")
			s.early("c")
			return s
		}, []string{"c", "a"}},
		"those that go for the size are named as well": {func() *updScene {
			return crowd(1, 1, "moved", "Running", "Running")
		}, []string{"b", "a"}},
		"none for one that goes for an autoscaler": {func() *updScene {
			s := crowd(1, 1, "moved", "Running", "Running")
			s.autoscaled("a")
			return s
		}, []string{"b"}},
		"one that goes for an autoscaler is not named": {func() *updScene {
			s := crowd(1, 1, "moved", "moved", "Running")
			s.autoscaled("a")
			return s
		}, []string{"b"}},
		"one that an autoscaler named and that has not moved goes for the size": {func() *updScene {
			s := crowd(1, 1, "moved", "Running", "Running")
			s.autoscaled("b")
			return s
		}, []string{"b", "a"}},
		"one that an autoscaler named and that is leaving has no place": {func() *updScene {
			s := crowd(1, 1, "moved", "Running", "moved")
			s.autoscaled("c")
			s.leaves("c")
			return s
		}, []string{"a", "c"}},
		"whoever is leaving stays named when a name is withdrawn": {func() *updScene {
			s := crowd(2, 2, "moved", "Running", "Running")
			s.leaves("c")
			s.named("new", "a")
			return s
		}, []string{"c"}},
		"nothing is named anew while all that are named go": {func() *updScene {
			s := crowd(2, 2, "Running", "Running", "moved")
			s.autoscaled("a")
			s.leaves("b")
			s.named("new", "a")
			s.sized("new", "2")
			return s
		}, []string{"a"}},
		"a name is not withdrawn by a set that has not reported": {func() *updScene {
			s := crowd(2, 2, "moved", "Running")
			s.named("new", "b")
			s.set("new").Generation = 2
			s.sized("new", "2")
			return s
		}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.scene()
			p := s.plan()
			names, _ := p.names(s.set("new"))
			require.Equal(t, c.names, names, p.dec.String())
		})
	}
}

func TestInPlaceASetToWhichNothingHasMovedKeepsItsNames(t *testing.T) {
	s := crowd(2, 1, "moved")
	s.machine("old", "b", "Running")
	s.set("old").Spec.Replicas = 1
	s.named("old", "b")
	s.sized("old", "2")
	p := s.plan()
	names, _ := p.names(s.set("old"))
	require.Equal(t, []string{"b"}, names, p.dec.String())
}

func TestInPlaceASetThatIsBeingDeletedIsNotToldWhoGoes(t *testing.T) {
	s := crowd(3, 2, "Running", "Running") // it has a place
	s.machine("old", "c", "moved")
	s.named("old", "c")
	s.set("old").DeletionTimestamp = deletedAt(900)
	p := s.plan()
	names, _ := p.names(s.set("old"))
	require.Equal(t, []string{"c"}, names, p.dec.String())
}

// Machines have moved to both old sets while each was the new one.
func TestInPlaceSeveralSetsNameNoMoreMachinesThanAreTooMany(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", true), "c2", 0, 1) // of which none is seen yet
	s.machine("old", "b", "moved")
	s.older(0)
	s.machine("old", "a", "moved") // of the older one
	p := s.plan()
	names, _ := p.names(s.in.Sets[0])
	require.Equal(t, []string{"a"}, names, p.dec.String())
	names, _ = p.names(s.in.Sets[1])
	require.Empty(t, names, p.dec.String())
}

func TestInPlaceMachinesOfOtherSetsAreNotNamed(t *testing.T) {
	s := newUpdScene(updDeployment(0, "0", "1", true), "c2", 1, 0)
	s.machine("new", "a", "moved")
	s.machine("old", "b", "moved")
	s.early("b")
	p := s.plan()
	names, _ := p.names(s.set("new"))
	require.Equal(t, []string{"a"}, names, p.dec.String())
}

// The old set asks for nothing, and begins to ask for the one that has moved to it
// in this pass.
func TestInPlaceMachinesThatGoAnywayAreNotTooMany(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", true), "c2", 0, 0)
	s.machine("old", "a", "moved")
	s.machine("old", "b", "Running")
	p := s.plan()
	names, _ := p.names(s.set("old"))
	require.NotContains(t, names, "a", p.dec.String())
}

// An old set has a machine too many, which has moved to it. Another one may have some
// to give.
func TestInPlaceWhichSetsAreWaitedForBeforeAMachineIsNamed(t *testing.T) {
	unseen := func(s *v1alpha1.MachineSet) { s.Status.Replicas++ }
	silent := func(s *v1alpha1.MachineSet) { s.Generation = 2 }
	for name, c := range map[string]struct {
		replicas int
		kind     string // of its only machine
		change   func(other *v1alpha1.MachineSet)
		names    []string
	}{
		"one that has not seen that machines have left it": {1, "Running", unseen, nil},
		"one that has not reported":                        {1, "Running", silent, nil},
		"not one that has seen all":                        {1, "Running", func(*v1alpha1.MachineSet) {}, []string{"a"}},
		"not one that asks for nothing":                    {0, "", silent, []string{"a"}},
		"not one to which machines have moved":             {1, "moved", unseen, []string{"a"}},
		"not one that is being deleted": {1, "Running", func(s *v1alpha1.MachineSet) {
			unseen(s)
			s.DeletionTimestamp = deletedAt(900)
		}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUpdScene(updDeployment(c.replicas, "0", "1", true), "c2", 0, 0)
			s.machine("old", "a", "moved")
			s.older(int32(c.replicas))
			if c.kind != "" {
				s.machine("old", "b", c.kind) // of the older one
			}
			c.change(s.in.Sets[0])
			p := s.plan()
			names, _ := p.names(s.in.Sets[1])
			require.Equal(t, c.names, names, p.dec.String())
		})
	}
}

// While machines are replaced, the old set names one of its own for that which has
// moved to it.
func TestAMachineThatIsNamedInPlaceOfOneThatHasMovedIsNotAvailableForAnother(t *testing.T) {
	d := rolling(1, 1, 0)
	old, other, newSet := rollSet(d, "c0", 1, 1, 1), rollSet(d, "cx", 1, 2, 2), rollSet(d, "c1", 0, 0, 0)
	in := rollSee(d, old, other, newSet)
	in.Machines[2].Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
	require.Zero(t, sizeAfter(t, in, rollPolicy, old))
	require.Equal(t, int32(1), sizeAfter(t, in, rollPolicy, other))
}

func TestInPlaceANameOfOneThatIsLeavingIsNoReasonToAcknowledgeAnother(t *testing.T) {
	s := crowd(0, 0, "moved", "Running")
	s.leaves("b")
	s.named("new", "b")
	p := s.plan()
	names, acknowledged := p.names(s.set("new"))
	require.Equal(t, []string{"a", "b"}, names, p.dec.String())
	require.False(t, acknowledged, "its own name has not been seen")
}
