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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

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
	w := &overWorld{t: t, r: rand.New(rand.NewPCG(seed, 7)), now: noon, unfrozen: map[string]bool{}, counts: map[string]int{}}
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
		s := w.in.Sets[i].DeepCopy()
		s.Annotations = map[string]string{v1alpha1.UnfreezeAnnotation: "true"}
		w.in.Sets = put(w.in.Sets, s)
		return
	}
	d := w.in.Deployments[i-len(w.in.Sets)].DeepCopy()
	d.Annotations = map[string]string{v1alpha1.UnfreezeAnnotation: "true"}
	w.in.Deployments = put(w.in.Deployments, d)
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
		view.Sets, view.Deployments = w.before[w.r.IntN(len(w.before))].Sets, w.before[w.r.IntN(len(w.before))].Deployments
	}
	w.before = append(w.before, w.in)
	if troubles && w.r.IntN(10) == 0 {
		w.state = safety.OvershootState{}
	}
	shuffled := view
	shuffled.Sets, shuffled.Machines, shuffled.Deployments = slices.Clone(view.Sets), slices.Clone(view.Machines), slices.Clone(view.Deployments)
	w.r.Shuffle(len(shuffled.Sets), func(i, j int) {
		shuffled.Sets[i], shuffled.Sets[j] = shuffled.Sets[j], shuffled.Sets[i]
	})
	w.r.Shuffle(len(shuffled.Machines), func(i, j int) {
		shuffled.Machines[i], shuffled.Machines[j] = shuffled.Machines[j], shuffled.Machines[i]
	})
	slices.Reverse(shuffled.Deployments)
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
			require.Equal(t, members.Frozen(s), len(s.Status.Conditions) == 1, "seed %d: label and condition differ", seed)
		}
		for what, n := range w.counts {
			total[what] += n
		}
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
	p := safety.DefaultOvershootPolicy()
	labeled := overSet("a", "", 1)
	labeled.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	in := safety.OvershootObservation{Sets: []*v1alpha1.MachineSet{labeled}, Machines: overMachines("a", 9), Complete: true}
	_, d := safety.StepOvershoot(safety.OvershootState{}, in, p, noon)
	require.Equal(t, "update machineset a: frozen in namespace shoot; MachineSet a has 9 machines and stays frozen until it has 3; update status of machineset a: frozen", d.String())
	require.Len(t, writesOf(d)[0].Set.Status.Conditions, 1)

	unlabeled := frozenSet(overSet("a", "", 1))
	unlabeled.Labels = nil
	in.Sets[0] = unlabeled
	state, d := safety.StepOvershoot(safety.OvershootState{}, in, p, noon)
	require.Equal(t, "update status of machineset a: unfrozen in namespace shoot; label freeze was removed; update machineset a: unfrozen", d.String())

	in.Sets[0] = writesOf(d)[0].Set
	_, d = safety.StepOvershoot(state, in, p, noon.Add(time.Hour))
	require.Empty(t, d.Actions, "a label taken off by hand was set again")

	other := overSet("a", "", 1) // another value than True says nothing
	other.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionFalse}}
	in.Sets[0] = other
	_, d = safety.StepOvershoot(safety.OvershootState{}, in, p, noon)
	require.Empty(t, d.Actions)
}

// TestOvershoot_FirstStep_WaitsForAnotherCreation starts with a set that has too many
// machines, as after a restart.
func TestOvershoot_FirstStep_WaitsForAnotherCreation(t *testing.T) {
	p, in := safety.DefaultOvershootPolicy(), safety.OvershootObservation{Sets: []*v1alpha1.MachineSet{overSet("a", "", 1)}, Machines: overMachines("a", 9), Complete: true}
	ahead := in.Machines[0] // by the clock of the API server, which is ahead
	ahead.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
	state, d := safety.StepOvershoot(safety.OvershootState{}, in, p, noon)
	require.Equal(t, "nothing; waits for machineset/shoot/a: OverShootingReplicaCount: it has 9 machines, at least 4; it is frozen if it creates another machine", d.String())
	same, d := safety.StepOvershoot(state, in, p, noon.Add(time.Hour))
	require.Empty(t, d.Actions)
	require.Equal(t, state, same)

	in.Machines = slices.Concat(in.Machines, overMachines("a", 10)[9:])
	in.Machines[9].CreationTimestamp = metav1.NewTime(noon.Add(time.Hour))
	_, d = safety.StepOvershoot(state, in, p, noon.Add(time.Hour))
	require.Len(t, writesOf(d), 1)
	require.True(t, writesOf(d)[0].Frozen)
}

// TestOvershoot_LimitChanged_WaitsForAnotherCreation changes the limit of a set that has too
// many machines. The set then creates one more.
func TestOvershoot_LimitChanged_WaitsForAnotherCreation(t *testing.T) {
	ask := map[string]string{v1alpha1.UnfreezeAnnotation: ""}
	for name, change := range map[string]func(s *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment){
		"the set changes":                func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Generation++ },
		"the deployment changes":         func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Generation++ },
		"another deployment":             func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.UID = "another" },
		"the limit falls":                func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Spec.Replicas-- },
		"the set is to be unfrozen":      func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Annotations = ask },
		"all sets are to be unfrozen":    func(_ *v1alpha1.MachineSet, d *v1alpha1.MachineDeployment) { d.Annotations = ask },
		"the label was taken off a set":  func(s *v1alpha1.MachineSet, _ *v1alpha1.MachineDeployment) { s.Labels = nil },
		"nothing changes, so it freezes": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p, set, d := safety.DefaultOvershootPolicy(), overSet("a", "md", 1), overDeployment("md", 2, 0)
			if name == "the label was taken off a set" {
				set.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
			}
			in := safety.OvershootObservation{Deployments: []*v1alpha1.MachineDeployment{d}, Sets: []*v1alpha1.MachineSet{set}, Complete: true}
			state, _ := safety.StepOvershoot(safety.OvershootState{}, in, p, noon.Add(-time.Hour))
			in.Machines = overMachines("a", 9)
			if change == nil {
				_, decision := safety.StepOvershoot(state, in, p, noon)
				require.True(t, writesOf(decision)[0].Frozen)
				return
			}
			change(set, d)
			if d.UID == "another" {
				set.OwnerReferences[0].UID = d.UID
			}
			state, _ = safety.StepOvershoot(state, in, p, noon)
			set.Annotations, d.Annotations = nil, nil
			require.Empty(t, freezes(state, in, noon.Add(time.Hour)))
			one := overMachines("a", 10)[9:]
			in.Machines = slices.Concat(in.Machines, one)
			one[0].CreationTimestamp = metav1.NewTime(noon.Add(9 * time.Second))
			require.Empty(t, freezes(state, in, noon.Add(time.Hour)), "a request that was under way")
			one[0].CreationTimestamp = metav1.NewTime(noon.Add(11 * time.Second))
			require.Len(t, freezes(state, in, noon.Add(time.Hour)), 2)
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
	Event      *machinist.Event
}

// writesOf returns the writes of a decision. It panics if an update differs in more than it says.
func writesOf(d safety.Decision[machinist.Update]) (out []write) {
	for i := 0; i < len(d.Actions); i += 2 {
		first, second := d.Actions[i], d.Actions[i+1]
		w := write{Frozen: first.Subresource == "", Event: second.Report}
		w.Set, _ = second.Object.(*v1alpha1.MachineSet)
		w.Deployment, _ = second.Object.(*v1alpha1.MachineDeployment)
		if first.Subresource == second.Subresource || first.Object != second.Before || !first.Unchanged || !second.Unchanged || first.Report != nil || second.Report == nil {
			panic(d.String())
		}
		for _, u := range []machinist.Update{first, second} {
			before, beforeStatus := partsOf(u.Before)
			after, afterStatus := partsOf(u.Object)
			if u.Subresource == "" && !equality.Semantic.DeepEqual(beforeStatus, afterStatus) || u.Subresource != "" && !equality.Semantic.DeepEqual(before, after) {
				panic(u.String())
			}
		}
		out = append(out, w)
	}
	return out
}

// partsOf returns the metadata and the status of a set or deployment.
func partsOf(o machinist.Object) (metadata metav1.ObjectMeta, status any) {
	if set, ok := o.(*v1alpha1.MachineSet); ok {
		return set.ObjectMeta, set.Status
	}
	d := o.(*v1alpha1.MachineDeployment)
	return d.ObjectMeta, d.Status
}
