// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A world holds one deployment, its sets, and machines; the set controller, the
// machines and the user in it act at random. Only what a set has delivered of
// its status is visible to decisions.
type world struct {
	t    testing.TB
	rng  *rand.Rand
	seed uint64
	now  time.Time

	d     *v1alpha1.MachineDeployment
	sets  []*worldSet
	names int

	spiteful bool // sets delete available machines first
	fragile  bool // machines of old sets break, for ever
	dirty    bool // something changed since the last decision
	next     time.Time
	last     deployment.Decision

	most   int32 // the largest replicas + surge there were
	loud   bool
	passes int
	trace  strings.Builder
}

type worldSet struct {
	*v1alpha1.MachineSet
	machines []*worldMachine
	report   *v1alpha1.MachineSetStatus // computed, not delivered
	floor    int32                      // available machines that its deletions have to leave
	next     int32                      // the same, once the decision is carried out
}

type worldMachine struct{ available, broken, leaving bool }

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), now: base, dirty: true}
	w.d = &v1alpha1.MachineDeployment{}
	w.d.Name, w.d.Namespace, w.d.UID, w.d.Generation = "md", "ns", "uid-md", 1
	w.d.Spec = v1alpha1.MachineDeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
		Template: (*goldenTemplate)(nil).spec(),
		Strategy: strategy("RollingUpdate", "", new(intstr.FromInt32(1)), new(intstr.FromInt32(0))),
	}
	return w
}

func (w *world) logf(format string, args ...any) {
	if w.loud {
		fmt.Fprintf(&w.trace, format+"\n", args...)
	}
}

// errAgain asks for the same run with a trace.
var errAgain = errors.New("failed, run again")

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	if !w.loud {
		panic(errAgain)
	}
	lines := strings.Split(w.trace.String(), "\n")
	w.t.Fatalf("seed %d: %s\n%s\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(lines[max(0, len(lines)-60):], "\n"), w)
}

// String shows asked for/reported/available of every set as reported, and what
// there is.
func (w *world) String() string {
	var out []string
	for _, s := range w.sets {
		text := fmt.Sprintf("%s %d/%d/%d", s.Name, s.Spec.Replicas, s.Status.Replicas, s.Status.AvailableReplicas)
		if s.Status.ObservedGeneration < s.Generation {
			text += "?"
		}
		all, available := s.count()
		out = append(out, fmt.Sprintf("%s [%d,%d]", text, all, available))
	}
	return fmt.Sprintf("want %d: %s", w.d.Spec.Replicas, strings.Join(out, "  "))
}

func (s *worldSet) count() (all, available int32) {
	for _, m := range s.machines {
		all++
		if m.available && !m.leaving {
			available++
		}
	}
	return all, available
}

func (w *world) count() (all, asked, available int32) {
	for _, s := range w.sets {
		n, a := s.count()
		all, available = all+n, available+a
		asked += max(n, s.Spec.Replicas)
	}
	return all, asked, available
}

func (w *world) observe() deployment.Observation {
	in := deployment.Observation{Deployment: w.d, Complete: true}
	for _, s := range w.sets {
		in.Sets = append(in.Sets, s.MachineSet)
	}
	w.rng.Shuffle(len(in.Sets), func(i, j int) { in.Sets[i], in.Sets[j] = in.Sets[j], in.Sets[i] })
	return in
}

// decide is one pass of the deployment controller, which may die half-way.
func (w *world) decide(mayDie bool) {
	if !w.dirty && (w.next.IsZero() || w.now.Before(w.next)) {
		return
	}
	in := w.observe()
	var before deployment.Observation
	w.passes++
	if w.passes%16 == 0 {
		before = deepCopy(in)
	}
	dec := deployment.Decide(in, deployment.Policy{}, w.now)
	w.checkDecision(before, in, dec)
	w.dirty, w.next, w.last = false, dec.NextCheck, dec
	if dec.WriteStatus {
		w.d.Status, w.dirty = *dec.Status.DeepCopy(), true
	}
	w.allow(dec)
	for _, a := range dec.Actions {
		if mayDie && w.rng.IntN(6) == 0 {
			w.logf("  (lost) %s", a)
			return
		}
		w.logf("  %s", a)
		w.act(a)
		w.dirty = true
	}
}

func (w *world) act(a deployment.Action) {
	switch a := a.(type) {
	case deployment.AddFinalizer:
		w.d.Finalizers = append(w.d.Finalizers, a.Finalizer)
	case deployment.RemoveFinalizer:
		w.d.Finalizers = slices.DeleteFunc(w.d.Finalizers, func(f string) bool { return f == a.Finalizer })
	case deployment.Annotate:
		if w.d.Annotations == nil {
			w.d.Annotations = map[string]string{}
		}
		maps.Copy(w.d.Annotations, a.Annotations)
	case deployment.CreateSet:
		for _, s := range w.sets {
			if s.Name == a.Set.Name || deployment.EqualIgnoreHash(s.Spec.Template, a.Set.Spec.Template) {
				w.failf("a second set for one template: %s", a)
			}
		}
		w.names++
		a.Set.UID, a.Set.Generation = types.UID(fmt.Sprintf("uid-%d", w.names)), 1
		a.Set.CreationTimestamp = metav1.NewTime(w.now)
		w.sets = append(w.sets, &worldSet{MachineSet: a.Set})
	case deployment.UpdateSet:
		s := w.set(a.Set.UID)
		a.Set.Status, a.Set.Generation = s.Status, s.Generation+1
		s.MachineSet = a.Set
	case deployment.Scale:
		w.resize(a)
	case deployment.DeleteSet:
		s := w.set(a.UID)
		s.DeletionTimestamp = new(metav1.NewTime(w.now))
		s.Finalizers = []string{"set"}
		s.Generation++
	default:
		w.failf("unknown action %T", a)
	}
}

func (w *world) set(uid types.UID) *worldSet {
	for _, s := range w.sets {
		if s.UID == uid {
			return s
		}
	}
	w.failf("no set %s", uid)
	return nil
}

func (w *world) resize(a deployment.Scale) {
	s := w.set(a.UID)
	if s.Spec.Replicas != a.From {
		return
	}
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	maps.Copy(s.Annotations, a.Annotations)
	if a.From == a.To {
		return
	}
	if a.To < a.From {
		s.floor = s.next
	}
	s.Spec.Replicas = a.To
	s.Generation++
}

// minimum is how many machines have to stay available: negative bounds count as
// zero, and if both are zero one machine may be unavailable.
func (w *world) minimum() int32 {
	unavailable := max(0, deployment.MaxUnavailable(w.d))
	if unavailable == 0 && deployment.MaxSurge(w.d) <= 0 {
		unavailable = 1
	}
	return max(0, w.d.Spec.Replicas-unavailable)
}

// allow checks what a decision takes away, and notes how many available machines
// the deletions that come of it have to leave.
func (w *world) allow(dec deployment.Decision) {
	to := map[types.UID]int32{}
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.Scale); ok && a.To < a.From {
			to[a.UID] = a.To
		}
	}
	if len(to) == 0 {
		return
	}
	floor, settled := w.minimum(), true
	var active, sure, after, cut int32
	for _, s := range w.sets {
		if s.Spec.Replicas > 0 {
			active++
		}
		size, ok := to[s.UID]
		if !ok {
			size = s.Spec.Replicas
		}
		cut += s.Spec.Replicas - size
		reported := s.Status.ObservedGeneration >= s.Generation && s.DeletionTimestamp == nil
		settled = settled && reported && s.Status.Replicas == s.Spec.Replicas
		if reported {
			exist := max(s.Status.Replicas, s.Spec.Replicas)
			sure += max(0, s.Status.AvailableReplicas-(exist-s.Spec.Replicas))
			after += max(0, s.Status.AvailableReplicas-(exist-size))
		}
	}
	floor = min(floor, sure)
	switch {
	case active <= 1 || w.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType:
		floor = 0
		for _, s := range w.sets {
			s.floor = 0
		}
	case after < floor:
		if !settled || cut != 1 {
			w.failf("%v: %d are sure to be available, %d needed, %d before", dec.Actions, after, floor, sure)
		}
		floor--
	}
	for _, s := range w.sets {
		s.next = floor
		if n, _ := s.count(); n > s.Spec.Replicas {
			s.next = min(floor, s.floor)
		}
	}
}

// control is one pass of the set controller: it reports what it finds, then
// creates and deletes.
func (w *world) control(s *worldSet) {
	all, available := s.count()
	s.report = &v1alpha1.MachineSetStatus{Replicas: all, AvailableReplicas: available, ReadyReplicas: available, FullyLabeledReplicas: all, ObservedGeneration: s.Generation}
	want := int(s.Spec.Replicas)
	if s.DeletionTimestamp != nil {
		want = 0
	}
	staying := slices.DeleteFunc(slices.Clone(s.machines), func(m *worldMachine) bool { return m.leaving })
	for range want - len(staying) {
		s.machines = append(s.machines, &worldMachine{})
	}
	w.rng.Shuffle(len(staying), func(i, j int) { staying[i], staying[j] = staying[j], staying[i] })
	slices.SortStableFunc(staying, func(a, b *worldMachine) int {
		switch {
		case a.available == b.available:
			return 0
		case a.available == w.spiteful:
			return -1
		default:
			return 1
		}
	})
	for _, m := range staying[:max(0, len(staying)-want)] {
		m.leaving = true
		_, _, left := w.count()
		if m.available && !w.fragile && s.DeletionTimestamp == nil && left < s.floor {
			w.failf("%s deletes an available machine: %d left, %d needed", s.Name, left, s.floor)
		}
	}
}

func (w *world) deliver(s *worldSet) {
	if s.report != nil {
		s.Status, s.report, w.dirty = *s.report, nil, true
	}
}

// live lets something happen to one machine of a set.
func (w *world) live(s *worldSet) {
	if len(s.machines) == 0 {
		if s.DeletionTimestamp != nil {
			w.sets = slices.DeleteFunc(w.sets, func(x *worldSet) bool { return x == s })
			w.dirty = true
		}
		return
	}
	current := deployment.EqualIgnoreHash(s.Spec.Template, w.d.Spec.Template)
	i := w.rng.IntN(len(s.machines))
	switch m := s.machines[i]; {
	case m.leaving:
		s.machines = slices.Delete(s.machines, i, i+1)
	case !m.available && (!m.broken || current):
		m.available, m.broken = true, false
	case w.fragile && !current && w.rng.IntN(30) == 0:
		m.available, m.broken = false, true
	}
}

// change has the user ask for something else.
func (w *world) change(scaleIn bool) {
	w.dirty = true
	switch w.rng.IntN(6) {
	case 0, 1:
		n := int32(w.rng.IntN(21))
		if !scaleIn {
			n = max(n, w.d.Spec.Replicas)
		}
		w.d.Spec.Replicas = n
		for _, s := range w.sets {
			s.floor = min(s.floor, w.minimum())
		}
	case 2, 3:
		w.d.Spec.Template.Spec.Class.Name = fmt.Sprintf("c%d", 1+w.rng.IntN(4))
	case 4:
		w.d.Spec.Paused = !w.d.Spec.Paused
	case 5:
		w.d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": fmt.Sprint(w.rng.IntN(100))}
	}
	w.d.Generation++
	w.limit()
	w.logf("user: want %d of %s, paused %t", w.d.Spec.Replicas, w.d.Spec.Template.Spec.Class.Name, w.d.Spec.Paused)
}

func (w *world) limit() {
	w.most = max(w.most, w.d.Spec.Replicas+max(0, deployment.MaxSurge(w.d)))
}

// done says that the roll-out has ended, and that the decision knows.
func (w *world) done() bool {
	if w.dirty || w.last.Reason != deployment.ReasonComplete {
		return false
	}
	all, asked, available := w.count()
	if want := w.d.Spec.Replicas; all != want || asked != want || (available != want && !w.fragile) {
		w.failf("complete, but there are %d machines, %d asked for, %d available", all, asked, available)
	}
	return true
}

// step lets one actor act.
func (w *world) step() {
	if len(w.sets) == 0 || w.rng.IntN(4) == 0 {
		for range w.rng.IntN(3) {
			w.decide(true)
		}
	} else {
		s := w.sets[w.rng.IntN(len(w.sets))]
		switch w.rng.IntN(4) {
		case 0:
			w.control(s)
		case 1:
			w.deliver(s)
		default:
			w.live(s)
		}
	}
	w.now = w.now.Add(time.Second)
	if all, asked, _ := w.count(); !w.fragile && (all > w.most || asked > w.most) {
		w.failf("%d machines, %d asked for, %d allowed", all, asked, w.most)
	}
}

// checkDecision checks what holds for each decision.
func (w *world) checkDecision(before, in deployment.Observation, dec deployment.Decision) {
	switch {
	case before.Deployment != nil && !equalObservation(before, in):
		w.failf("the observation was modified")
	case !dec.NextCheck.IsZero() && !dec.NextCheck.After(w.now):
		w.failf("next check %s is not after now", dec.NextCheck)
	case len(dec.Actions) > 0 && dec.NextCheck.IsZero():
		w.failf("actions without a next check")
	case dec.Reason == "":
		w.failf("no reason")
	case len(dec.Actions)+len(dec.Holds) == 0 && dec.Reason != deployment.ReasonComplete && !dec.WriteStatus:
		w.failf("nothing is done, and nothing is said about it: %s", dec.Reason)
	}
	if !w.loud {
		return
	}
	w.logf("%s: %s", dec.Reason, w)
	for _, h := range dec.Holds {
		w.logf("  %s", h)
	}
}
