// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// owned returns metadata of an object with a controller of this name.
func owned(name, controller string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: types.UID("uid-" + name)}
	if controller != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{Name: controller, UID: types.UID("uid-" + controller), Controller: ptr.To(true)}}
	}
	return meta
}

// overSet returns a set with a condition of another controller.
func overSet(name, deployment string, replicas int32) *v1alpha1.MachineSet {
	s := &v1alpha1.MachineSet{ObjectMeta: owned(name, deployment), Spec: v1alpha1.MachineSetSpec{Replicas: replicas}}
	s.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure}}
	return s
}

func overDeployment(name string, replicas, surge int32) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: owned(name, "")}
	d.Spec.Replicas, d.Spec.Strategy.Type = replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
	}}
	return d
}

// overMachines returns n machines of a set, created a minute before the start.
func overMachines(set string, n int) (out []*v1alpha1.Machine) {
	for i := range n {
		m := &v1alpha1.Machine{ObjectMeta: owned(fmt.Sprint(set, "-", i), set)}
		m.CreationTimestamp = metav1.NewTime(start.Add(-time.Minute))
		out = append(out, m)
	}
	return out
}

// seen returns a complete observation of sets, deployments and lists of machines.
func seen(objects ...any) (in safety.OvershootObservation) {
	in.Complete = true
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.MachineSet:
			in.Sets = append(in.Sets, o)
		case *v1alpha1.MachineDeployment:
			in.Deployments = append(in.Deployments, o)
		case []*v1alpha1.Machine:
			in.Machines = append(in.Machines, o...)
		}
	}
	return in
}

// frozenSet freezes a set like a decision.
func frozenSet(set *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	set.Status.Conditions = append(set.Status.Conditions, v1alpha1.MachineSetCondition{
		Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(safety.Overshooting), LastTransitionTime: metav1.NewTime(start),
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
	state, _ := safety.StepOvershoot(safety.OvershootState{}, before, p, start.Add(-time.Hour))
	_, d := safety.StepOvershoot(state, in, p, start)
	return d
}

// overshoot returns the decision as text, a line for each write and hold.
func overshoot(in safety.OvershootObservation) (lines []string) {
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
	}, overshoot(seen(
		overDeployment("rolling", 2, 1), overSet("b", "rolling", 2), overMachines("b", 9),
		recreate, overSet("a", "recreate", 3), overMachines("a", 6),
	)))
}

func TestOvershoot_AllSets_CountControlledMachinesOnly(t *testing.T) {
	leaving := overMachines("b", 9)
	for i, m := range leaving {
		if i%2 == 0 {
			m.DeletionTimestamp = &metav1.Time{Time: start}
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
	}, overshoot(seen(
		other, selected, overMachines("d", 5), overSet("c", "", 1), namesake,
		overSet("b", "", 1), leaving, overSet("a", "", 1), overMachines("a", 4),
	)))
}

func TestOvershoot_Deployment_FollowsItsSets(t *testing.T) {
	d := overDeployment("md", 3, 1)
	in := seen(d, frozenSet(overSet("a", "md", 3)), overSet("b", "md", 0), overMachines("a", 6))
	waits := "nothing; waits for machineset/shoot/a: OverShootingReplicaCount: it has 6 machines and is unfrozen at 5"
	require.Equal(t, []string{
		"update machinedeployment md: frozen in namespace shoot; MachineSet a is frozen", "update status of machinedeployment md: frozen", waits,
	}, overshoot(in))

	in.Deployments[0] = frozenDeployment(d)
	require.Equal(t, []string{waits}, overshoot(in))

	in.Machines = in.Machines[:5]
	require.Equal(t, []string{
		"update status of machineset a: unfrozen in namespace shoot; it has 5 machines, at most 5", "update machineset a: unfrozen",
		"update status of machinedeployment md: unfrozen in namespace shoot; none of its sets is frozen", "update machinedeployment md: unfrozen",
	}, overshoot(in))
}

func TestOvershoot_UnfreezeAnnotation_UnfreezesAllSetsThenTheDeployment(t *testing.T) {
	alone, d := frozenSet(overSet("alone", "", 1)), frozenDeployment(overDeployment("md", 1, 0))
	alone.Annotations = map[string]string{v1alpha1.UnfreezeAnnotation: "yes"}
	d.Annotations = alone.Annotations
	in := seen(d, alone, frozenSet(overSet("a", "md", 1)), overMachines("alone", 50), overMachines("a", 50))
	state, decision := safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), start)
	require.Equal(t, "update status of machineset a: unfrozen in namespace shoot; annotation safety.machine.sapcloud.io/unfreeze is set; update machineset a: unfrozen; "+
		"update status of machineset alone: unfrozen in namespace shoot; annotation safety.machine.sapcloud.io/unfreeze is set; update machineset alone: unfrozen; "+
		"waits for machinedeployment/shoot/md: MachineDeploymentStateSync: MachineSet a is not unfrozen yet; the deployment is unfrozen after it", decision.String())
	in.Sets = []*v1alpha1.MachineSet{writesOf(decision)[0].Set, writesOf(decision)[1].Set}
	_, decision = safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), start.Add(time.Second))
	require.Equal(t, "update status of machinedeployment md: unfrozen in namespace shoot; none of its sets is frozen; update machinedeployment md: unfrozen; "+
		"waits for machineset/shoot/alone: OverShootingReplicaCount: it has 50 machines, at least 4; it is frozen if it creates another machine", decision.String())
	require.Empty(t, writesOf(decision)[0].Deployment.Status.Conditions)
}

func TestOvershoot_IncompleteLists_DecideNothing(t *testing.T) {
	in := seen(overSet("a", "", 1), frozenSet(overSet("b", "", 1)), overMachines("a", 9))
	in.Complete = false
	d := created(in, safety.OvershootPolicy{})
	require.Empty(t, d.Actions)
	require.Len(t, d.Holds, 1)
	require.Equal(t, safety.MachinesUnusable, d.Holds[0].Reason)
	require.Equal(t, start.Add(time.Minute), d.NextCheck)
}

func TestOvershoot_DeletedOrWithoutUID_IsSkipped(t *testing.T) {
	deleted, nameless := overSet("a", "", 1), overSet("b", "", 1)
	nameless.UID = ""
	d := frozenDeployment(overDeployment("md", 1, 0))
	deleted.DeletionTimestamp, d.DeletionTimestamp = &metav1.Time{Time: start}, &metav1.Time{Time: start}
	orphans := overMachines("b", 9)
	for _, m := range orphans {
		m.OwnerReferences = nil
	}
	in := seen(d, &v1alpha1.MachineDeployment{}, deleted, nameless, overMachines("a", 9), orphans)
	in.Deployments, in.Sets, in.Machines = append(in.Deployments, nil), append(in.Sets, nil), append(in.Machines, nil)
	require.Empty(t, overshoot(in))
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
		for _, s := range in.Sets {
			require.Equal(t, v1alpha1.MachineSetReplicaFailure, s.Status.Conditions[0].Type, "seed %d", seed)
		}
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

// overWorld has two deployments with two sets each, one set without a deployment, and the
// client that writes the decisions.
type overWorld struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Time
	state    safety.OvershootState
	in       safety.OvershootObservation
	before   []safety.OvershootObservation // what was seen earlier
	unfrozen map[string]bool               // sets that were unfrozen for a user, and have created nothing since
	counts   map[string]int
	made     int
}

func newOverWorld(t *testing.T, seed uint64) *overWorld {
	t.Helper()
	w := &overWorld{t: t, r: rand.New(rand.NewPCG(seed, 7)), now: start, unfrozen: map[string]bool{}, counts: map[string]int{}}
	w.in = safety.OvershootObservation{Complete: true, Deployments: []*v1alpha1.MachineDeployment{overDeployment("d", 2, 1), overDeployment("e", 1, 0)}}
	for i, parent := range []string{"d", "d", "e", "e", ""} {
		w.in.Sets = append(w.in.Sets, overSet(fmt.Sprint("s", i), parent, 1))
	}
	return w
}

// create creates machines of a set.
func (w *overWorld) create(set string, n int) {
	for range n {
		w.made++
		m := &v1alpha1.Machine{ObjectMeta: owned(fmt.Sprint("m", w.made), set)}
		m.CreationTimestamp = metav1.NewTime(w.now)
		w.in.Machines = append(slices.Clone(w.in.Machines), m)
	}
	delete(w.unfrozen, set)
}

func (w *overWorld) remove(set string, n int) {
	w.in.Machines = slices.DeleteFunc(slices.Clone(w.in.Machines), func(m *v1alpha1.Machine) bool {
		gone := n > 0 && m.OwnerReferences[0].Name == set
		if gone {
			n--
		}
		return gone
	})
}

// ask annotates a set or a deployment like a user.
func (w *overWorld) ask(i int) {
	if i < len(w.in.Sets) {
		w.in.Sets = asked(w.in.Sets, i)
	} else {
		w.in.Deployments = asked(w.in.Deployments, i-len(w.in.Sets))
	}
}

func asked[T interface {
	metav1.Object
	DeepCopy() T
}](list []T, i int) []T {
	o := list[i].DeepCopy()
	o.SetAnnotations(map[string]string{v1alpha1.UnfreezeAnnotation: "true"})
	return put(list, o)
}

// put returns a new list with an object, so that earlier views do not change.
func put[T metav1.Object](list []T, o T) []T {
	o.SetResourceVersion(o.GetResourceVersion() + "+")
	list = slices.Clone(list)
	list[slices.IndexFunc(list, func(other T) bool { return other.GetName() == o.GetName() })] = o
	return list
}

// pass decides from the present or an earlier view, and loses and repeats requests.
func (w *overWorld) pass(troubles bool) safety.Decision[machinist.Update] {
	view := w.in
	if troubles && len(w.before) > 0 && w.r.IntN(4) == 0 {
		view.Sets, view.Deployments = oneOf(w.r, w.before...).Sets, oneOf(w.r, w.before...).Deployments
	}
	w.before = append(w.before, w.in)
	if troubles && w.r.IntN(10) == 0 {
		w.state = safety.OvershootState{}
	}
	shuffled := view
	shuffled.Sets, shuffled.Machines = mixed(w.r, view.Sets), mixed(w.r, view.Machines)
	shuffled.Deployments = mixed(w.r, view.Deployments)
	next, d := safety.StepOvershoot(w.state, view, safety.DefaultOvershootPolicy(), w.now)
	sameState, same := safety.StepOvershoot(w.state, shuffled, safety.DefaultOvershootPolicy(), w.now)
	require.Equal(w.t, d, same, "the order of a list matters")
	require.Equal(w.t, next, sameState)
	w.state = next
	for _, write := range writesOf(d) {
		for range 1 + w.r.IntN(2) {
			w.write(write, troubles)
		}
	}
	return d
}

// write stores a decision in two requests, of which each may be lost. A request of an
// older version is refused.
func (w *overWorld) write(f write, troubles bool) {
	for i := range 2 {
		if troubles && w.r.IntN(4) == 0 {
			w.counts["lost"]++
			return
		}
		metadata := (i == 0) == f.Frozen
		if f.Set != nil {
			w.in.Sets = store(w, w.in.Sets, f.Set, metadata, func(next *v1alpha1.MachineSet) { next.Status = f.Set.Status })
		} else {
			w.in.Deployments = store(w, w.in.Deployments, f.Deployment, metadata, func(next *v1alpha1.MachineDeployment) { next.Status = f.Deployment.Status })
		}
	}
}

// store stores the metadata or the status of an object, unless the stored one has another version.
func store[T interface {
	metav1.Object
	DeepCopy() T
}](w *overWorld, list []T, o T, metadata bool, status func(next T)) []T {
	is := list[slices.IndexFunc(list, func(other T) bool { return other.GetName() == o.GetName() })]
	if is.GetResourceVersion() != o.GetResourceVersion() {
		w.counts["refused"]++
		return list
	}
	next := is.DeepCopy()
	if metadata {
		next.SetLabels(o.GetLabels())
		next.SetAnnotations(o.GetAnnotations())
	} else {
		status(next)
	}
	if set, ok := any(is).(*v1alpha1.MachineSet); ok {
		w.noteFreeze(set, any(next).(*v1alpha1.MachineSet))
	}
	list = put(list, next)
	o.SetResourceVersion(next.GetResourceVersion())
	return list
}

func (w *overWorld) noteFreeze(is, next *v1alpha1.MachineSet) {
	switch was, frozen := members.Frozen(is), members.Frozen(next); {
	case frozen && !was:
		w.counts["frozen"]++
		require.False(w.t, w.unfrozen[is.Name], "%s was unfrozen, has created nothing, and is frozen again", is.Name)
	case was && !frozen:
		w.counts["unfrozen"]++
		w.unfrozen[is.Name] = true
	}
}

// TestOvershoot_Unfrozen_StaysSoUntilAnotherCreation unfreezes sets and deployments by
// annotation, with lost, repeated and refused requests and a lost state.
func TestOvershoot_Unfrozen_StaysSoUntilAnotherCreation(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	for seed := range uint64(400) {
		w := newOverWorld(t, seed)
		for range 60 {
			w.now = w.now.Add(time.Duration(1+w.r.IntN(90)) * time.Second)
			set := fmt.Sprint("s", w.r.IntN(5))
			switch w.r.IntN(6) {
			case 0, 1:
				w.create(set, 1+w.r.IntN(4))
			case 2:
				w.remove(set, 1+w.r.IntN(4))
			case 3:
				w.ask(w.r.IntN(7))
			}
			w.now = w.now.Add(time.Second)
			w.pass(true)
		}
		for range 6 {
			w.now = w.now.Add(time.Second)
			w.pass(false)
		}
		require.Empty(t, w.pass(false).Actions, "seed %d: it does not come to rest", seed)
		for _, d := range w.in.Deployments {
			require.NotContains(t, d.Annotations, v1alpha1.UnfreezeAnnotation)
			frozen := slices.ContainsFunc(w.in.Sets, func(s *v1alpha1.MachineSet) bool { return metav1.IsControlledBy(s, d) && members.Frozen(s) })
			require.Equal(t, frozen, d.Labels[v1alpha1.FreezeLabelKey] == "True", "seed %d", seed)
			require.Equal(t, frozen, len(d.Status.Conditions) == 1, "seed %d", seed)
		}
		for _, s := range w.in.Sets {
			require.NotContains(t, s.Annotations, v1alpha1.UnfreezeAnnotation)
			require.Equal(t, members.Frozen(s), len(s.Status.Conditions) == 2, "seed %d: label and condition differ", seed)
		}
		addAll(total, w.counts)
	}
	for _, what := range []string{"frozen", "unfrozen", "lost", "refused"} {
		require.Greater(t, total[what], 400, "%s in %v", what, total)
	}
}

// TestOvershoot_CreationsWithinTheReplicas_NeverFreeze changes replicas and decides at
// any time. Machines are created within the replicas, and deleted late.
func TestOvershoot_CreationsWithinTheReplicas_NeverFreeze(t *testing.T) {
	t.Parallel()
	over, scaled := 0, 0
	for seed := range uint64(1000) {
		w := newOverWorld(t, seed)
		w.in.Sets = w.in.Sets[:1]
		set, d, generation := "s0", 0, int64(1)
		for range 80 {
			w.now = w.now.Add(time.Duration(1+w.r.IntN(30)) * time.Second)
			switch spec := w.in.Sets[0].Spec.Replicas; w.r.IntN(8) {
			case 0: // the replicas of the deployment, or of the set that follows it
				generation++
				scaled++
				next := w.in.Deployments[d].DeepCopy()
				next.Spec.Replicas, next.Generation = w.r.Int32N(15), generation
				w.in.Deployments = put(w.in.Deployments, next)
			case 1:
				generation++
				next := w.in.Sets[0].DeepCopy()
				next.Spec.Replicas, next.Generation = w.in.Deployments[d].Spec.Replicas, generation
				w.in.Sets = put(w.in.Sets, next)
			case 2, 3, 4:
				w.create(set, max(0, min(3, int(spec)-len(w.in.Machines))))
			case 5:
				w.remove(set, max(0, min(2, len(w.in.Machines)-int(spec))))
			default:
				state, decision := safety.StepOvershoot(w.state, w.in, safety.DefaultOvershootPolicy(), w.now)
				require.Empty(t, decision.Actions, "seed %d", seed)
				w.state = state
				over += len(decision.Holds)
				if w.r.IntN(10) == 0 {
					w.state = safety.OvershootState{}
				}
			}
		}
	}
	require.Greater(t, over, 1000, "too many machines were seen too rarely")
	require.Greater(t, scaled, 1000)
}

// TestOvershoot_HalfWrittenSet_IsCompleted loses one of the two requests of a freeze
// and of its end.
func TestOvershoot_HalfWrittenSet_IsCompleted(t *testing.T) {
	p, labeled, other := safety.DefaultOvershootPolicy(), overSet("a", "", 1), overSet("a", "", 1)
	unlabeled := frozenSet(overSet("a", "", 1))
	labeled.Labels = unlabeled.Labels
	_, d := safety.StepOvershoot(safety.OvershootState{}, seen(labeled, overMachines("a", 9)), p, start)
	require.Equal(t, "update machineset a: frozen in namespace shoot; MachineSet a has 9 machines and stays frozen until it has 3; update status of machineset a: frozen", d.String())

	unlabeled.Labels = nil
	state, d := safety.StepOvershoot(safety.OvershootState{}, seen(unlabeled, overMachines("a", 9)), p, start)
	require.Equal(t, "update status of machineset a: unfrozen in namespace shoot; label freeze was removed; update machineset a: unfrozen", d.String())
	_, d = safety.StepOvershoot(state, seen(writesOf(d)[0].Set, overMachines("a", 9)), p, start.Add(time.Hour))
	require.Empty(t, d.Actions, "a label taken off by hand was set again")

	other.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionFalse}}
	_, d = safety.StepOvershoot(safety.OvershootState{}, seen(other, overMachines("a", 9)), p, start)
	require.Empty(t, d.Actions, "another value than True says nothing")
}

// TestOvershoot_FirstStep_WaitsForAnotherCreation starts with a set that has too many
// machines, as after a restart.
func TestOvershoot_FirstStep_WaitsForAnotherCreation(t *testing.T) {
	in := seen(overSet("a", "", 1), overMachines("a", 9))
	in.Machines[0].CreationTimestamp = metav1.NewTime(start.Add(time.Minute)) // the clock of the API server is ahead
	state, d := safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), start)
	require.Equal(t, "nothing; waits for machineset/shoot/a: OverShootingReplicaCount: it has 9 machines, at least 4; it is frozen if it creates another machine", d.String())
	same, d := safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), start.Add(time.Hour))
	require.Empty(t, d.Actions)
	require.Equal(t, state, same)

	in.Machines = overMachines("a", 10)
	in.Machines[9].CreationTimestamp = metav1.NewTime(start.Add(time.Hour))
	require.Len(t, freezes(state, in, start.Add(time.Hour)), 1)
}

// TestOvershoot_LimitChanged_WaitsForAnotherCreation changes the limit of a set that has too
// many machines. The set then creates one more.
func TestOvershoot_LimitChanged_WaitsForAnotherCreation(t *testing.T) {
	ask := map[string]string{v1alpha1.UnfreezeAnnotation: ""}
	for name, change := range map[string]func(s *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment){
		"the set changes":        func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Generation++ },
		"the deployment changes": func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Generation++ },
		"another deployment": func(s *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) {
			d.UID, s.OwnerReferences[0].UID = "another", "another"
		},
		"the limit falls":               func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Spec.Replicas-- },
		"the set is to be unfrozen":     func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Annotations = ask },
		"all sets are to be unfrozen":   func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Annotations = ask },
		"the label was taken off a set": func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			p, set, d := safety.DefaultOvershootPolicy(), overSet("a", "md", 1), overDeployment("md", 2, 0)
			if name == "the label was taken off a set" {
				set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
			}
			in := seen(d, set)
			state, _ := safety.StepOvershoot(safety.OvershootState{}, in, p, start.Add(-time.Hour))
			in.Machines = overMachines("a", 9)
			require.Len(t, freezes(state, in, start), 2, "nothing has changed")
			change(set, d)
			state, _ = safety.StepOvershoot(state, in, p, start)
			set.Annotations, d.Annotations = nil, nil
			require.Empty(t, freezes(state, in, start.Add(time.Hour)))
			in.Machines = overMachines("a", 10)
			for seconds, want := range map[int]int{9: 0, 11: 2} { // a request that was under way, and a later one
				in.Machines[9].CreationTimestamp = metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
				require.Len(t, freezes(state, in, start.Add(time.Hour)), want, "after %d s", seconds)
			}
		})
	}
}

// freezes returns the objects that a decision freezes.
func freezes(state safety.OvershootState, in safety.OvershootObservation, now time.Time) []write {
	_, d := safety.StepOvershoot(state, in, safety.DefaultOvershootPolicy(), now)
	return slices.DeleteFunc(writesOf(d), func(w write) bool { return !w.Frozen })
}

// write is the freeze of one object, or its end: two updates, of the metadata and of the status.
type write struct {
	Set        *v1alpha1.MachineSet
	Deployment *v1alpha1.MachineDeployment
	Frozen     bool
}

// writesOf returns the writes of a decision. It panics if an update differs in more than it says.
func writesOf(d safety.Decision[machinist.Update]) (out []write) {
	for i := 0; i < len(d.Actions); i += 2 {
		first, second := d.Actions[i], d.Actions[i+1]
		w := write{Frozen: first.Subresource == ""}
		w.Set, _ = second.Object.(*v1alpha1.MachineSet)
		w.Deployment, _ = second.Object.(*v1alpha1.MachineDeployment)
		ordered := first.Subresource != second.Subresource && first.Object == second.Before && first.Unchanged && second.Unchanged
		if !ordered || first.Report != nil || second.Report == nil {
			panic(d.String())
		}
		for _, u := range []machinist.Update{first, second} {
			if !equality.Semantic.DeepEqual(unwritten(u.Before, u.Subresource), unwritten(u.Object, u.Subresource)) {
				panic(u.String())
			}
		}
		out = append(out, w)
	}
	return out
}

// unwritten returns the part of a set or deployment that an update does not write.
func unwritten(o machinist.Object, subresource string) any {
	if subresource != "" {
		meta := o.(metav1.Object)
		return [2]any{meta.GetLabels(), meta.GetAnnotations()}
	}
	if set, ok := o.(*v1alpha1.MachineSet); ok {
		return set.Status
	}
	return o.(*v1alpha1.MachineDeployment).Status
}
