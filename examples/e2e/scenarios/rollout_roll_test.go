// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestRoll_UnavailableMachines_ReplacedFirst(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	var broken types.UID
	o.Bounds.Excused = func(m *v1alpha1.Machine) bool { return m.UID == broken } // it is us who bring it down
	s := cluster.Set(t, "roll", o)
	s.StartManager(t, "manager")
	nodes := behold(t, s)
	deploy(t, s, s.Deployment("workers", "small", 5, 1, 1))
	before := machines(t, s)
	// The order of a set alone begins with the lowest priority, whatever its health.
	unimportant := before[1].UID
	annotate(t, s, before[1].Name, v1alpha1.MachinePriority, "2")
	broken = before[3].UID
	sick(t, s, before[3].Name, corev1.ConditionTrue)
	s.Wait(t, patience, "one is broken", in(s, before[3].Name, v1alpha1.MachineUnknown))

	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	old, current := setOf(t, s, "small"), setOf(t, s, "large")
	allOf(t, s, current, 5)
	went := departures(s)
	require.Len(t, went, 5)
	require.Equal(t, []types.UID{broken, unimportant}, []types.UID{went[0].UID, went[1].UID})
	require.Len(t, arrivals(s), 10, "each was replaced once")

	require.EqualValues(t, 0, old.Spec.Replicas, "it is kept to go back to")
	require.Equal(t, "1", old.Annotations[v1alpha1.RevisionAnnotation])
	require.Equal(t, "2", current.Annotations[v1alpha1.RevisionAnnotation])
	require.Equal(t, "True", old.Annotations[v1alpha1.PreferNoScheduleKey])
	require.NotContains(t, current.Annotations, v1alpha1.PreferNoScheduleKey)
	s.Wait(t, patience, "it has the revision", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		return d.Annotations[v1alpha1.RevisionAnnotation] == "2" && progressIs(v1alpha1.ConditionTrue, v1alpha1.NewMachineSetAvailable)(d)
	}))
	s.Wait(t, patience, "the nodes are as others", unmarked(s))
	for _, m := range before {
		if m.UID == broken {
			continue // it may have gone before its Node was marked
		}
		discouraged, holds := nodes.seen(s.NodeName(m.Name))
		require.True(t, discouraged, "pods should leave %s if they can", m.Name)
		require.Equal(t, 1, holds, "the autoscaler is told once to keep away from %s", m.Name)
	}
	for _, m := range machines(t, s) {
		discouraged, holds := nodes.seen(s.NodeName(m.Name))
		require.False(t, discouraged, "pods are welcome on %s", m.Name)
		require.LessOrEqual(t, holds, 1, "the autoscaler is told once to keep away from %s", m.Name)
	}
	s.Wait(t, patience, "it is told", func(ctx context.Context) (string, error) {
		reasons, err := told(ctx, s, "MachineDeployment", "workers")
		reasons = slices.DeleteFunc(reasons, func(r string) bool { return r != "ScalingMachineSet" })
		if err != nil || len(reasons) < 4 {
			return fmt.Sprintf("%d sizes were told", len(reasons)), err
		}
		return "", nil
	})
	removeAll(t, s)
}

func TestRoll_MinReadySeconds_DelaysAvailability(t *testing.T) {
	t.Parallel()
	const settle = 3 * time.Second
	s := cluster.Set(t, "settle", fastOptions())
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 2, 1, 0)
	d.Spec.MinReadySeconds = int32(settle / time.Second)
	deploy(t, s, d)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), 2)

	ready, going := map[types.UID]time.Time{}, map[types.UID]bool{} // since when new ones have been ready, and which old ones go
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		switch {
		case !ok:
		case m.Spec.Class.Name == "large":
			for _, condition := range m.Status.Conditions {
				if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready[m.UID] = condition.LastTransitionTime.Time
				}
			}
		case m.DeletionTimestamp != nil:
			going[m.UID] = true
		}
		settled := 0
		for _, since := range ready {
			if !since.Add(settle).After(c.Time) {
				settled++
			}
		}
		require.LessOrEqual(t, len(going), settled, "one goes before another has settled: %s", c)
	}
	require.Len(t, going, 2)
	removeAll(t, s)
}

func TestRoll_ReplicasChange_BoundsAreKept(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "rescaled", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 5, 1, 1))
	roll(t, s, "workers", "large")
	for _, replicas := range []int{8, 4} {
		s.Wait(t, patience, "half-way", deploymentIs(s, "workers", halfway))
		change(t, s, "workers", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		s.Wait(t, patience, "it is seen", deploymentIs(s, "workers", observed))
		require.NotZero(t, setOf(t, s, "small").Spec.Replicas, "the roll was over before %d were wanted", replicas)
	}
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), 4)
	require.EqualValues(t, 0, setOf(t, s, "small").Spec.Replicas)
	removeAll(t, s)
}

func TestRoll_Paused_ReplacesNothing(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "paused", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 5, 1, 1))
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "half-way", deploymentIs(s, "workers", halfway))
	change(t, s, "workers", `{"spec":{"paused":true}}`)
	s.Wait(t, patience, "it is seen", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		return observed(d) && progressIs(v1alpha1.ConditionUnknown, v1alpha1.DeploymentPaused)(d)
	}))
	old := setOf(t, s, "small").Spec.Replicas
	require.NotZero(t, old, "the roll was over before it was paused")
	s.Wait(t, patience, "a roll would have gone on", passed(lookedAt))
	require.Equal(t, old, setOf(t, s, "small").Spec.Replicas)
	went := len(departures(s)) // one that was chosen before may have gone since

	change(t, s, "workers", `{"spec":{"replicas":8}}`)
	s.Wait(t, patience, "it has grown", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		return observed(d) && d.Status.AvailableReplicas >= 8
	}))
	require.GreaterOrEqual(t, setOf(t, s, "small").Spec.Replicas, old)
	require.Len(t, departures(s), went)

	change(t, s, "workers", `{"spec":{"paused":false}}`)
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), 8)
	removeAll(t, s)
}

func TestRecreate_OldMachines_AreDeletedFirst(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "recreate", fastOptions())
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 3, 0, 0)
	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	nodes := behold(t, s)
	deploy(t, s, d)
	before := machines(t, s)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), 3)
	left := len(before)
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		switch {
		case !ok:
		case m.Spec.Class.Name == "large":
			require.Zero(t, left, "%s was made too early", m.Name)
		case c.Gone:
			left--
		}
	}
	for _, m := range before {
		discouraged, _ := nodes.seen(s.NodeName(m.Name))
		require.False(t, discouraged, "there is nowhere else to go yet")
	}
	removeAll(t, s)
}
