// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
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
