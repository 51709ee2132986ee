// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// owned returns metadata of an object with a controller of this UID.
func owned(name, controller string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: types.UID("uid-" + name)}
	if controller != "" {
		yes := true
		meta.OwnerReferences = []metav1.OwnerReference{{Name: controller, UID: types.UID("uid-" + controller), Controller: &yes}}
	}
	return meta
}

func overSet(name, deployment string, replicas int32) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{ObjectMeta: owned(name, deployment), Spec: v1alpha1.MachineSetSpec{Replicas: replicas}}
}

func overDeployment(name string, replicas, surge int32) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: owned(name, "")}
	d.Spec.Replicas, d.Spec.Strategy.Type = replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(0)),
	}}
	return d
}

func overMachines(set string, n int) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for i := range n {
		m := &v1alpha1.Machine{ObjectMeta: owned(fmt.Sprint(set, "-", i), set)}
		m.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute))
		out = append(out, m)
	}
	return out
}

// frozenSet freezes a set like a decision.
func frozenSet(set *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	set.Status.Conditions = append(set.Status.Conditions, v1alpha1.MachineSetCondition{
		Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(safety.Overshooting), LastTransitionTime: metav1.NewTime(noon),
	})
	return set
}

// frozenDeployment freezes a deployment like a decision.
func frozenDeployment(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentFrozen, Status: v1alpha1.ConditionTrue}}
	return d
}

// created decides about machines that were created after the first step.
func created(in safety.OvershootObservation, p safety.OvershootPolicy) safety.Decision[machinist.Update] {
	before := in
	before.Machines = nil
	state, _ := safety.StepOvershoot(safety.OvershootState{}, before, p, noon.Add(-time.Hour))
	_, d := safety.StepOvershoot(state, in, p, noon)
	return d
}

// overshoot returns the decision as text, a line for each write and hold.
func overshoot(in safety.OvershootObservation) []string {
	var lines []string
	d := created(in, safety.DefaultOvershootPolicy())
	for _, w := range d.Actions {
		lines = append(lines, w.String())
	}
	for _, h := range d.Holds {
		lines = append(lines, "nothing; waits for "+h.String())
	}
	return lines
}

func TestOvershoot_NoSurge_IsChecked(t *testing.T) {
	recreate := overDeployment("recreate", 3, 9)
	recreate.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	require.Equal(t, []string{
		"update machineset a: frozen in namespace shoot; The number of machines backing MachineSet: a is 6 >= 5 which is the Max-ScaleUp-Limit", "update status of machineset a: frozen",
		"update machineset b: frozen in namespace shoot; The number of machines backing MachineSet: b is 9 >= 5 which is the Max-ScaleUp-Limit", "update status of machineset b: frozen",
		"update machinedeployment recreate: frozen in namespace shoot; The number of machines backing MachineSet: a is 6 >= 5 which is the Max-ScaleUp-Limit", "update status of machinedeployment recreate: frozen",
		"update machinedeployment rolling: frozen in namespace shoot; The number of machines backing MachineSet: b is 9 >= 5 which is the Max-ScaleUp-Limit", "update status of machinedeployment rolling: frozen",
	}, overshoot(safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{overDeployment("rolling", 2, 1), recreate},
		Sets:        []*v1alpha1.MachineSet{overSet("b", "rolling", 2), overSet("a", "recreate", 3)},
		Machines:    append(overMachines("a", 6), overMachines("b", 9)...), Complete: true,
	}))
}

func TestOvershoot_AllSets_CountControlledMachinesOnly(t *testing.T) {
	leaving := overMachines("b", 9)
	for i, m := range leaving {
		if i%2 == 0 {
			m.DeletionTimestamp = &metav1.Time{Time: noon}
		} else {
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
		}
	}
	namesake := overMachines("c", 9)
	for _, m := range namesake {
		m.OwnerReferences[0].UID = "of another set of this name"
	}
	selected := overSet("d", "", 1) // the labels fit a deployment that does not own it
	selected.Labels = map[string]string{"app": "w"}
	other := overDeployment("other", 100, 0)
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: selected.Labels}
	require.Equal(t, []string{
		"update machineset a: frozen in namespace shoot; The number of machines backing MachineSet: a is 4 >= 4 which is the Max-ScaleUp-Limit", "update status of machineset a: frozen",
		"update machineset d: frozen in namespace shoot; The number of machines backing MachineSet: d is 5 >= 4 which is the Max-ScaleUp-Limit", "update status of machineset d: frozen",
	}, overshoot(safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{other},
		Sets:        []*v1alpha1.MachineSet{selected, overSet("c", "", 1), overSet("b", "", 1), overSet("a", "", 1)},
		Machines:    slices.Concat(overMachines("a", 4), leaving, namesake, overMachines("d", 5)), Complete: true,
	}))
}

func TestOvershoot_Deployment_FollowsItsSets(t *testing.T) {
	d := overDeployment("md", 3, 1)
	in := safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{d},
		Sets:        []*v1alpha1.MachineSet{frozenSet(overSet("a", "md", 3)), overSet("b", "md", 0)},
		Machines:    overMachines("a", 6), Complete: true,
	}
	require.Equal(t, []string{
		"update machinedeployment md: frozen in namespace shoot; MachineSet a is frozen", "update status of machinedeployment md: frozen",
		"nothing; waits for machineset/shoot/a: OverShootingReplicaCount: it has 6 machines and is unfrozen at 5",
	}, overshoot(in))

	in.Deployments[0] = frozenDeployment(d)
	require.Equal(t, []string{"nothing; waits for machineset/shoot/a: OverShootingReplicaCount: it has 6 machines and is unfrozen at 5"}, overshoot(in))

	in.Machines = in.Machines[:5]
	require.Equal(t, []string{
		"update status of machineset a: unfrozen in namespace shoot; it has 5 machines, at most 5", "update machineset a: unfrozen",
		"update status of machinedeployment md: unfrozen in namespace shoot; none of its sets is frozen", "update machinedeployment md: unfrozen",
	}, overshoot(in))
}

func TestOvershoot_UnfreezeAnnotation_UnfreezesAllSetsThenTheDeployment(t *testing.T) {
	ask := map[string]string{v1alpha1.UnfreezeAnnotation: "yes"}
	alone := frozenSet(overSet("alone", "", 1))
	alone.Annotations = ask
	d := frozenDeployment(overDeployment("md", 1, 0))
	d.Annotations = ask
	in := safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{d},
		Sets:        []*v1alpha1.MachineSet{alone, frozenSet(overSet("a", "md", 1)), frozenSet(overSet("b", "md", 1))},
		Machines:    slices.Concat(overMachines("alone", 50), overMachines("a", 50), overMachines("b", 50)), Complete: true,
	}
	state, decision := safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), noon)
	require.Equal(t, "update status of machineset a: unfrozen in namespace shoot; annotation safety.machine.sapcloud.io/unfreeze is set; update machineset a: unfrozen; "+
		"update status of machineset alone: unfrozen in namespace shoot; annotation safety.machine.sapcloud.io/unfreeze is set; update machineset alone: unfrozen; "+
		"update status of machineset b: unfrozen in namespace shoot; annotation safety.machine.sapcloud.io/unfreeze is set; update machineset b: unfrozen; "+
		"waits for machinedeployment/shoot/md: MachineDeploymentStateSync: MachineSet b is not unfrozen yet; the deployment is unfrozen after it", decision.String())
	writes := writesOf(decision)
	for _, w := range writes {
		require.False(t, members.Frozen(w.Set))
		require.Empty(t, w.Set.Annotations)
		require.Empty(t, w.Set.Status.Conditions)
	}
	in.Sets = []*v1alpha1.MachineSet{writes[0].Set, writes[1].Set, writes[2].Set}
	_, decision = safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), noon.Add(time.Second))
	require.Equal(t, "update status of machinedeployment md: unfrozen in namespace shoot; none of its sets is frozen; update machinedeployment md: unfrozen; "+
		"waits for machineset/shoot/alone: OverShootingReplicaCount: it has 50 machines, at least 4; it is frozen if it creates another machine", decision.String())
	freed := writesOf(decision)[0].Deployment
	require.Empty(t, freed.Annotations)
	require.Empty(t, freed.Labels)
	require.Empty(t, freed.Status.Conditions)
}

func TestOvershoot_IncompleteLists_DecideNothing(t *testing.T) {
	in := safety.OvershootObservation{
		Sets:     []*v1alpha1.MachineSet{overSet("a", "", 1), frozenSet(overSet("b", "", 1))},
		Machines: overMachines("a", 9),
	}
	d := created(in, safety.OvershootPolicy{})
	require.Empty(t, d.Actions)
	require.Len(t, d.Holds, 1)
	require.Equal(t, safety.MachinesUnusable, d.Holds[0].Reason)
	require.Equal(t, noon.Add(time.Minute), d.NextCheck)

	zero := created(safety.OvershootObservation{}, safety.OvershootPolicy{})
	require.Empty(t, zero.Actions)
}

func TestOvershoot_DeletedOrWithoutUID_IsSkipped(t *testing.T) {
	deleted, nameless := overSet("a", "", 1), overSet("b", "", 1)
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	nameless.UID = ""
	d := frozenDeployment(overDeployment("md", 1, 0))
	d.DeletionTimestamp = &metav1.Time{Time: noon}
	orphan := overMachines("b", 9)
	for _, m := range orphan {
		m.OwnerReferences = nil
	}
	require.Empty(t, overshoot(safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{nil, d, {}},
		Sets:        []*v1alpha1.MachineSet{nil, deleted, nameless},
		Machines:    slices.Concat(overMachines("a", 9), orphan, []*v1alpha1.Machine{nil}), Complete: true,
	}))
}

func TestOvershoot_FreezeAndUnfreeze_RestoreTheObject(t *testing.T) {
	set, d := overSet("a", "md", 1), overDeployment("md", 1, 0)
	set.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure}}
	in := safety.OvershootObservation{
		Deployments: []*v1alpha1.MachineDeployment{d}, Sets: []*v1alpha1.MachineSet{set}, Machines: overMachines("a", 9), Complete: true,
	}
	writes := writesOf(created(in, safety.DefaultOvershootPolicy()))
	require.Len(t, writes, 2)
	frozen, held := writes[0], writes[1]
	require.True(t, frozen.Frozen && held.Frozen)
	require.True(t, members.Frozen(frozen.Set))
	require.Equal(t, "Normal FrozeMachineSet SafetyController: Froze MachineSet a due to replica overshooting", frozen.Event.String())
	require.Equal(t, "True", held.Deployment.Labels[v1alpha1.FreezeLabelKey])
	require.Len(t, held.Deployment.Status.Conditions, 1)
	require.Nil(t, set.Labels, "the set was changed")

	in.Sets[0], in.Deployments[0], in.Machines = frozen.Set, held.Deployment, nil
	writes = writesOf(created(in, safety.DefaultOvershootPolicy()))
	require.Len(t, writes, 2)
	back, free := writes[0], writes[1]
	require.Equal(t, "Normal UnfrozeMachineSet SafetyController: Unfroze MachineSet a", back.Event.String())
	require.Empty(t, back.Set.Labels)
	require.Equal(t, set.Status, back.Set.Status)
	require.Empty(t, free.Deployment.Status.Conditions)
}

// TestOvershoot_AfterWrites_ComesToRest writes a decision and decides again: there are no more
// actions for any thresholds that differ.
func TestOvershoot_AfterWrites_ComesToRest(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := safety.OvershootObservation{Complete: true}
		for i := range 1 + r.IntN(3) {
			in.Deployments = append(in.Deployments, overDeployment(fmt.Sprint("d", i), r.Int32N(5), r.Int32N(3)))
		}
		for i := range r.IntN(6) {
			set := overSet(fmt.Sprint("s", i), []string{"", "d0", "d1", "gone"}[r.IntN(4)], r.Int32N(5))
			if r.IntN(3) == 0 {
				set = frozenSet(set)
			}
			in.Sets = append(in.Sets, set)
			in.Machines = append(in.Machines, overMachines(set.Name, r.IntN(14))...)
		}
		p := safety.OvershootPolicy{Up: r.Int32N(3), Down: 1 + r.Int32N(3)}
		first := created(in, p)
		require.Equal(t, first, created(in, p))
		for _, w := range writesOf(first) {
			for i, s := range in.Sets {
				if w.Set != nil && s.UID == w.Set.UID {
					in.Sets[i] = w.Set
				}
			}
			for i, d := range in.Deployments {
				if w.Deployment != nil && d.UID == w.Deployment.UID {
					in.Deployments[i] = w.Deployment
				}
			}
		}
		require.Empty(t, created(in, p).Actions, "seed %d", seed)
		for _, d := range in.Deployments {
			anyFrozen := slices.ContainsFunc(in.Sets, func(s *v1alpha1.MachineSet) bool {
				return metav1.IsControlledBy(s, d) && members.Frozen(s)
			})
			require.Equal(t, anyFrozen, d.Labels[v1alpha1.FreezeLabelKey] == "True", "seed %d", seed)
		}
	}
}

func FuzzOvershoot(f *testing.F) {
	f.Add(int32(3), int32(1), int32(2), int32(1), 9, true)
	f.Add(int32(-1), int32(-1), int32(-1), int32(-1), -1, false)
	f.Add(int32(0), int32(0), int32(0), int32(0), 0, false) // the zero policy is the strictest
	f.Add(int32(1<<30), int32(1<<31-1), int32(1<<31-1), int32(0), 5, true)
	f.Fuzz(func(t *testing.T, desired, surge, up, down int32, machines int, frozen bool) {
		set, n := overSet("a", "md", desired), min(max(0, machines), 50)
		if frozen {
			set = frozenSet(set)
		}
		high := int(max(0, desired)) + int(max(0, surge)) + int(max(0, up))
		low := high - int(max(0, down))
		d := created(safety.OvershootObservation{
			Deployments: []*v1alpha1.MachineDeployment{overDeployment("md", desired, surge)},
			Sets:        []*v1alpha1.MachineSet{set}, Machines: overMachines("a", n), Complete: true,
		}, safety.OvershootPolicy{Up: up, Down: down})
		begins, ends := !frozen && n >= high && n > 0, frozen && n <= low
		writes := writesOf(d)
		i := slices.IndexFunc(writes, func(w write) bool { return w.Set != nil })
		require.Equal(t, begins || ends, i >= 0)
		if i >= 0 {
			require.Equal(t, begins, writes[i].Frozen)
		}
	})
}
