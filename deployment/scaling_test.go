// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	kindRolling  = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	kindRecreate = v1alpha1.RecreateMachineDeploymentStrategyType
	kindInPlace  = v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
)

func TestR1AChangeOfTheReplicasAtAnyStepOfARolloutChangesOnlyTheTotal(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindRecreate} {
		for step := range 14 {
			for _, to := range []int32{0, 1, 3, 5, 8, 12} {
				w := newRollWorld(t, rollDeployment(5, kind, intstr.FromInt32(1), intstr.FromInt32(1)))
				w.template("c2")
				for range step {
					w.step()
				}
				w.most = len(w.all)
				newMachines := int32(0)
				if s := w.class("c2"); s != nil {
					newMachines = s.Spec.Replicas
				}
				w.scale(to)
				for range 200 {
					if !w.step() && w.last.Reason == deployment.ReasonComplete {
						break
					}
					if s := w.class("c2"); s != nil && to >= 5 {
						require.GreaterOrEqual(t, s.Spec.Replicas, newMachines, "the new set never shrinks")
						newMachines = s.Spec.Replicas
					}
					if to >= 5 && kind == kindRecreate && w.class("c1").Spec.Replicas > 0 {
						require.LessOrEqual(t, w.class("c1").Spec.Replicas, max(5, to), "the old set takes no more than it has, or all")
					}
				}
				require.Equal(t, deployment.ReasonComplete, w.last.Reason, w.log.String())
				require.Len(t, w.all, int(to))
				require.LessOrEqual(t, w.most, int(max(6, to+1)))
				if kind == kindRolling {
					require.GreaterOrEqual(t, w.least, int(min(4, max(0, to-1))), "step %d to %d\n%s", step, to, w.log.String())
				}
			}
		}
	}
}

func TestDS3AChangeOfTheReplicasDoesNotStopARecreation(t *testing.T) {
	d := rollDeployment(3, kindRecreate, intstr.FromInt32(0), intstr.FromInt32(0))
	old, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "c1", 1, 1, 1)
	d.Spec.Replicas = 5
	require.Equal(t, []string{"scale md-c0 from 2 to 0: all old machines go first"}, rollLines(rollPlan(d, old, newSet)))

	old = rollSet(rollDeployment(5, kindRecreate, intstr.FromInt32(0), intstr.FromInt32(0)), "c0", 0, 0, 0)
	require.Equal(t, []string{"scale md-c1 from 1 to 5: 1 machines < 5 replicas + 0 max surge"}, rollLines(rollPlan(d, old, newSet)))
}

func TestDS3APausedDeploymentIsScaledWhateverItsStrategy(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindRecreate} {
		d := rollDeployment(6, kind, intstr.FromInt32(1), intstr.FromInt32(1))
		old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 3, 3, 3)
		d.Spec.Paused = true
		d.Spec.Replicas = 4
		dec := rollPlan(d, old, newSet)
		sum := int32(0)
		for _, x := range dec.Targets {
			require.LessOrEqual(t, x.To, x.From)
			sum += x.To
		}
		most := int32(4)
		if kind == kindRolling {
			most = 5
		}
		require.Equal(t, most, sum, "%s: %s", kind, dec)
		d.Spec.Replicas = 9
		dec = rollPlan(d, old, newSet)
		require.Equal(t, int32(3), dec.Targets[0].To)
		require.Greater(t, dec.Targets[1].To, int32(3), "%s: %s", kind, dec)
	}
}

func TestScalingWhilePausedAndBackToWork(t *testing.T) {
	w := newRollWorld(t, rolling(6, 2, 1))
	w.template("c2")
	for range 4 {
		w.step()
	}
	w.d.Spec.Paused = true
	w.scale(4)
	for range 20 {
		w.step()
	}
	require.LessOrEqual(t, len(w.all), 6)
	require.Contains(t, rollReasons(w.last), deployment.ReasonPaused)
	require.NotNil(t, w.class("c1"))
	require.Positive(t, w.class("c1").Spec.Replicas, w.log.String())
	w.d.Spec.Paused = false
	rollEnds(t, w)
}

func TestScaledToZeroAndBack(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindRecreate} {
		for step := range 8 {
			w := newRollWorld(t, rollDeployment(4, kind, intstr.FromInt32(1), intstr.FromInt32(0)))
			w.template("c2")
			for range step {
				w.step()
			}
			w.scale(0)
			w.run(60)
			require.Empty(t, w.all)
			w.scale(3)
			rollEnds(t, w)
		}
	}
}

func TestDS12ACutNeverGrowsASetAndArrives(t *testing.T) {
	// By its rounding the reference gives md-c0 one machine more.
	d := rolling(4, 1, 0)
	old, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "c1", 4, 4, 3)
	for _, s := range []*v1alpha1.MachineSet{old, newSet} {
		s.Annotations[v1alpha1.MaxReplicasAnnotation] = map[string]string{"md-c0": "4", "md-c1": "5"}[s.Name]
	}
	got := map[string]int32{}
	for _, x := range deployment.ScaleTargets(d, newSet, []*v1alpha1.MachineSet{old}) {
		got[x.Set.Name] = x.To
	}
	require.Equal(t, map[string]int32{"md-c0": 2, "md-c1": 3}, got)
	require.Equal(t, int32(-5), deployment.Proportion(deployment.Share{Size: 9, Desired: 4, ToAdd: -5}), "no former total")
}

func TestDS13GrowthInMidRollIsTakenByAnEmptyNewSet(t *testing.T) {
	d := rolling(4, 2, 0)
	old, newSet := rollSet(d, "c0", 4, 4, 4), rollSet(d, "c1", 0, 0, 0)
	other := rollSet(d, "c00", 1, 1, 1)
	d.Spec.Replicas = 6
	require.Equal(t, []string{"scale md-c1 from 0 to 3: 5 machines < 6 replicas + 2 max surge"}, rollLines(rollPlan(d, old, other, newSet)))

	d.Spec.Paused = true // without a new set the youngest takes it
	other.CreationTimestamp.Time = other.CreationTimestamp.Add(1)
	require.Equal(t, []string{"scale md-c00 from 1 to 4: 5 machines < 6 replicas + 2 max surge"}, rollLines(rollPlan(d, old, other)))
}

// namedWorld is in the middle of a roll-out; two machines are named to go.
func namedWorld(t *testing.T, names func(w *rollWorld) []string) *rollWorld {
	w := newRollWorld(t, rolling(6, 1, 1))
	w.template("c2")
	for w.class("c2") == nil || w.class("c2").Status.AvailableReplicas < 3 {
		require.True(t, w.step(), w.log.String())
	}
	w.left = nil
	list := names(w)
	next, err := deployment.ScaleDown(w.d, list, w.now)
	require.NoError(t, err)
	w.d = next
	w.d.Generation++
	require.Equal(t, int32(6-len(list)), w.d.Spec.Replicas)
	return w
}

func TestI5NamedMachinesGoFirstWhateverSetHasThem(t *testing.T) {
	for _, class := range []string{"c1", "c2"} {
		t.Run("of "+class, func(t *testing.T) {
			var names []string
			w := namedWorld(t, func(w *rollWorld) []string {
				for _, m := range w.of(w.class(class)) {
					if len(names) < 2 {
						names = append(names, m.Name)
					}
				}
				return names
			})
			for len(w.left) < 2 {
				require.True(t, w.step() || len(w.left) >= 2, w.log.String())
			}
			require.ElementsMatch(t, names, w.left[:2], w.log.String())
			rollEnds(t, w)
			seen := map[string]int{}
			for _, name := range w.left {
				seen[name]++
				require.Equal(t, 1, seen[name], "nobody goes twice")
			}
		})
	}
}

func TestI6EverySetHasATarget(t *testing.T) {
	d := rolling(5, 1, 0)
	var sets []*v1alpha1.MachineSet
	for i := range int32(6) {
		s := rollSet(d, fmt.Sprint("o", i), i%3, i%3, i%2)
		sets = append(sets, s)
	}
	sets = append(sets, rollSet(d, "c1", 1, 1, 1))
	for _, change := range []func(){
		func() {},
		func() { d.Spec.Paused = true },
		func() { d.Spec.Replicas = 2 },
		func() { d.Spec.Paused, d.Spec.RollbackTo = false, &v1alpha1.RollbackConfig{Revision: 1} },
		func() { d.Spec.RollbackTo, d.Spec.Strategy.Type = nil, kindRecreate },
		func() { d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"} },
	} {
		change()
		dec := rollPlan(d, sets...)
		require.Len(t, dec.Targets, len(sets))
		for _, s := range sets {
			target, err := dec.Target(s.UID)
			require.NoError(t, err)
			require.Equal(t, s.Spec.Replicas, target.From)
		}
	}
	_, err := rollPlan(d, sets...).Target("other")
	require.ErrorIs(t, err, deployment.ErrNoTarget)
}

func TestAPauseInTheGapOfARecreationBringsNoNewMachines(t *testing.T) {
	d := rollDeployment(4, kindRecreate, intstr.FromInt32(0), intstr.FromInt32(0))
	d.Spec.Paused = true
	old, newSet := rollSet(d, "c0", 0, 1, 0), rollSet(d, "c1", 0, 0, 0)
	dec := rollPlan(d, old, newSet)
	require.Empty(t, rollLines(dec))
	require.Contains(t, dec.String(), "1 old machines are left")
	old.Status.Replicas = 0
	require.Equal(t, []string{"scale md-c1 from 0 to 4: 0 machines < 4 replicas + 0 max surge"}, rollLines(rollPlan(d, old, newSet)))
}

func TestNoSetGrowsInACutOfNamedMachines(t *testing.T) {
	d := rolling(4, 1, 1)
	old, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "c1", 1, 1, 1) // there is room for two more
	d.Spec.Replicas = 3
	d.Annotations = map[string]string{v1alpha1.TriggerDeletionByMCM: "md-c0-00~2026-03-01T11:00:00Z"}
	dec := rollPlan(d, old, newSet)
	require.Equal(t, deployment.ReasonScaling, dec.Reason)
	require.Equal(t, []string{"scale md-c0 from 2 to 1: 2 > 1 for 3 replicas"}, rollLines(dec))
}

func TestOfTheNamedMachinesOnlySoManyGoAsTheReplicasAreFewer(t *testing.T) {
	d := rolling(4, 0, 2)
	a, b, newSet := rollSet(d, "c0", 2, 2, 2), rollSet(d, "cx", 1, 1, 1), rollSet(d, "c1", 1, 1, 1)
	d.Spec.Replicas = 3
	d.Annotations = map[string]string{v1alpha1.TriggerDeletionByMCM: "md-c0-00~2026-03-01T11:00:00Z,md-cx-00~2026-03-01T11:00:00Z"}
	dec := rollPlan(d, a, b, newSet)
	require.Equal(t, deployment.ReasonScaling, dec.Reason)
	require.Equal(t, []string{"scale md-c0 from 2 to 1: 2 > 1 for 3 replicas"}, rollLines(dec))
}

// A set that is being deleted is not sized any more, so its annotation tells the old
// replicas: base sees a scaling event in every pass, and the roll-out does not run
// before the set is gone. Here that means: no machine is created at all.
func TestASetThatIsBeingDeletedDoesNotHoldAChangeOfTheReplicas(t *testing.T) {
	d := rolling(3, 1, 1)
	doomed := rollSet(d, "c0", 3, 3, 0)
	doomed.DeletionTimestamp = new(metav1.NewTime(rollNow))
	fresh := rollSet(d, "c1", 0, 0, 0)
	d.Spec.Replicas = 5
	in := rollSee(d, doomed, fresh)
	for _, m := range in.Machines {
		m.DeletionTimestamp = doomed.DeletionTimestamp
	}
	target, err := deployment.Plan(in, rollPolicy, rollNow).Target("c1")
	require.NoError(t, err)
	require.Positive(t, target.To)
}

// A canary: one machine of the new template, and then the roll-out is paused. Base
// goes on to create new machines until the surge is used up (1 -> 4), under a hold that
// says "only changes of the replicas are carried out".
func TestAPausedRolloutCreatesNoMoreNewMachines(t *testing.T) {
	d := rolling(10, 3, 0)
	old, fresh := rollSet(d, "c0", 9, 9, 9), rollSet(d, "c1", 1, 1, 1)
	d.Spec.Paused = true
	require.Empty(t, rollLines(rollPlan(d, old, fresh)), "the replicas have not changed")
}
