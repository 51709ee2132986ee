// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// wanted names machines on the deployment as those that are to go.
func (s *updScene) wanted(names ...string) {
	var entries []string
	for _, name := range names {
		entries = append(entries, name+"~1970-01-01T00:10:00Z")
	}
	s.in.Deployment.Annotations = map[string]string{v1alpha1.TriggerDeletionByMCM: strings.Join(entries, ",")}
}

// scaled writes down when an autoscaler changed the replicas last.
func scaled(annotations map[string]string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime] = "1970-01-01T00:11:00Z"
	return annotations
}

// mark marks a machine as an autoscaler does.
func (s *updScene) mark(name string) {
	s.annotate(name, map[string]string{v1alpha1.MachinePriority: "1", v1alpha1.MarkedForDeletionTime: "1970-01-01T00:10:00Z"})
}

// early lets a machine go before others.
func (s *updScene) early(names ...string) {
	for _, name := range names {
		s.annotate(name, map[string]string{v1alpha1.MachinePriority: "1"})
	}
}

func (s *updScene) annotate(name string, annotations map[string]string) {
	i := slices.IndexFunc(s.in.Machines, func(m *v1alpha1.Machine) bool { return m.Name == name })
	s.in.Machines[i].Annotations = annotations
}

// leaves says that a machine is on its way out.
func (s *updScene) leaves(name string) {
	i := slices.IndexFunc(s.in.Machines, func(m *v1alpha1.Machine) bool { return m.Name == name })
	s.in.Machines[i].DeletionTimestamp = deletedAt(900)
}

func TestInPlaceNamedMachinesAreTakenOnlyFromASetThatSeesAllItHas(t *testing.T) {
	for reported, left := range map[int32]int32{0: 1, 1: 0} {
		s := newUpdScene(updDeployment(0, "0", "1", false), "c2", 1, 0)
		s.machine("old", "a", "Running")
		s.set("old").Status.Replicas = reported
		s.wanted("a")
		p := s.plan()
		require.Equal(t, left, p.sizes["old"], p.dec.String())
	}
}

func TestInPlaceAMachineThatIsNamedGoesOnlyIfFewerAreWanted(t *testing.T) {
	for replicas, left := range map[int]int32{2: 2, 1: 1} {
		s := newUpdScene(updDeployment(replicas, "0", "2", false), "c2", 2, 0)
		s.machine("old", "a", "Running")
		s.machine("old", "b", "Running")
		s.wanted("a")
		p := s.plan()
		require.Equal(t, left, p.sizes["old"], p.dec.String())
	}
}

func TestInPlaceOnlySoManyNamedMachinesOfSeveralSetsGoAsAreTooMany(t *testing.T) {
	s := newUpdScene(updDeployment(2, "0", "2", false), "c2", 2, 0)
	s.machine("old", "a", "Running")
	s.machine("old", "b", "Running")
	s.older(1)
	s.machine("old", "c", "Running") // of the older one
	s.wanted("a", "c")
	p := s.plan()
	require.Equal(t, map[string]int32{"older": 0, "old": 2, "new": 0}, p.sizes, p.dec.String())
}

func TestInPlaceNamedMachinesOfASetThatIsBeingDeletedAreLeftToIt(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 1, 1)
	s.machine("old", "a", "Running")
	s.machine("new", "b", "Running")
	s.set("old").DeletionTimestamp = deletedAt(900)
	s.wanted("a")
	p := s.plan()
	require.Equal(t, map[string]int32{"old": 1, "new": 1}, p.sizes, p.dec.String())
}

func TestInPlaceOldSetsGiveTogetherOnlyWhatIsTooMuch(t *testing.T) {
	s := newUpdScene(updDeployment(3, "0", "3", false), "c2", 2, 0)
	s.machine("old", "a", "Running")
	s.machine("old", "b", "Running")
	s.older(2)
	s.machine("old", "c", "Running") // of the older one
	s.machine("old", "d", "Running")
	p := s.plan()
	require.Equal(t, map[string]int32{"older": 1, "old": 2, "new": 0}, p.sizes, p.dec.String())
}

// The machine has moved, so that nothing takes it. It goes as soon as it is
// acknowledged, and the next one may not go as well.
func TestInPlaceAMachineThatIsNamedCountsAsGoneBeforeItsSetLetsItGo(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*updScene)
		left int32 // of the old set
	}{
		"nobody named it": {func(*updScene) {}, 0},
		"an autoscaler named it": {func(s *updScene) {
			s.mark("b")
			s.set("new").Annotations = scaled(s.set("new").Annotations)
		}, 1},
		"somebody names it now": {func(s *updScene) {
			s.wanted("b")
			s.set("new").Annotations = scaled(s.set("new").Annotations)
		}, 1},
		"the autoscaler names it now": {func(s *updScene) {
			s.mark("b")
			s.in.Deployment.Annotations = scaled(nil)
		}, 1},
		"it is of no use": {func(s *updScene) {
			s.mark("b")
			s.set("new").Annotations = scaled(s.set("new").Annotations)
			s.is("b", v1alpha1.MachineUnknown)
			s.machine("new", "c", "Running")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUpdScene(updDeployment(3, "0", "2", false), "c2", 1, 3)
			s.machine("old", "a", "Running")
			s.machine("new", "b", "moved")
			c.do(s)
			p := s.plan()
			require.Equal(t, c.left, p.sizes["old"], p.dec.String())
		})
	}
}
