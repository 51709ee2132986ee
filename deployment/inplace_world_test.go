// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// updWorld is a little world in which machines are updated in place: one
// deployment, its sets, their machines and Nodes. All objects live in one log of
// writes; each controller has caches that follow the log at their own pace.
type updWorld struct {
	t       *testing.T
	rng     *rand.Rand
	now     time.Time
	d       *v1alpha1.MachineDeployment
	live    updView
	log     []updWrite
	caches  map[string]*updCache
	unseen  machine.Expectations
	flights map[types.UID]machine.Expectations
	policy  deployment.Policy
	names   int
	// fails names the machines whose update fails, gone those whose Node vanishes.
	fails   func(*v1alpha1.Machine) bool
	done    map[types.UID]int // updates of each machine
	story   []string
	lenient bool   // availability is not judged: machines fail of their own accord
	above   int    // machines that may exist because more were wanted a moment ago
	forever bool   // machines whose update failed are not replaced
	rolling bool   // the strategy is another by now
	hidden  string // a Node that the deployment controller does not see
	frozen  bool   // the planner is checked not to change what it is given
	last    deployment.Decision
	below   int // machines that are enough because fewer were wanted a moment ago
}

type updView struct {
	sets     map[string]*v1alpha1.MachineSet
	machines map[string]*v1alpha1.Machine
	nodes    map[string]*corev1.Node
}

type updWrite struct {
	name string
	obj  metav1.Object // nil for a deletion
	kind string
}

type updCache struct {
	updView
	at int
}

func newUpdView() updView {
	return updView{map[string]*v1alpha1.MachineSet{}, map[string]*v1alpha1.Machine{}, map[string]*corev1.Node{}}
}

// find returns an object of a kind and name, whichever set controls it.
func (v updView) find(kind, name string) metav1.Object {
	switch kind {
	case machine.KindSet:
		return v.sets[name]
	case machine.KindMachine:
		return v.machines[name]
	}
	return v.nodes[name]
}

func (v updView) apply(w updWrite) {
	switch w.kind {
	case machine.KindSet:
		put(v.sets, w)
	case machine.KindMachine:
		put(v.machines, w)
	case machine.KindNode:
		put(v.nodes, w)
	}
}

func put[T metav1.Object](m map[string]T, w updWrite) {
	if w.obj == nil {
		delete(m, w.name)
		return
	}
	m[w.name] = w.obj.(T)
}

func updDeployment(replicas int, surge, unavailable string, manual bool) *v1alpha1.MachineDeployment {
	orchestration := v1alpha1.OrchestrationTypeAuto
	if manual {
		orchestration = v1alpha1.OrchestrationTypeManual
	}
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns", UID: "d", Generation: 1, Finalizers: []string{v1alpha1.MCMFinalizerName}},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: int32(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
			Template: updTemplate("c1"),
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
				InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: new(intstr.Parse(surge)), MaxUnavailable: new(intstr.Parse(unavailable))},
					OrchestrationType:   orchestration,
				},
			},
		},
	}
}

func updTemplate(class string) v1alpha1.MachineTemplateSpec {
	return v1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
	}
}

func newUpdWorld(t *testing.T, seed uint64, d *v1alpha1.MachineDeployment) *updWorld {
	t.Helper()
	w := &updWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), d: d,
		live: newUpdView(), caches: map[string]*updCache{}, flights: map[types.UID]machine.Expectations{},
		fails: func(*v1alpha1.Machine) bool { return false }, done: map[types.UID]int{}, below: math.MaxInt,
	}
	return w
}

func (w *updWorld) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// write stores an object, as an API server does, and returns it.
func (w *updWorld) write(kind string, obj metav1.Object) {
	obj.SetResourceVersion(strconv.Itoa(len(w.log) + 1))
	wr := updWrite{name: obj.GetName(), obj: obj, kind: kind}
	w.log = append(w.log, wr)
	w.live.apply(wr)
}

func (w *updWorld) remove(kind, name string) {
	wr := updWrite{name: name, kind: kind}
	w.log = append(w.log, wr)
	w.live.apply(wr)
}

// see lets a cache follow the log: all of it, or some of it.
func (w *updWorld) see(who string, all bool) updView {
	c := w.caches[who]
	if c == nil {
		c = &updCache{updView: newUpdView()}
		w.caches[who] = c
		all = true
	}
	to := len(w.log)
	if !all {
		to = c.at + w.rng.IntN(to-c.at+1)
	}
	for ; c.at < to; c.at++ {
		c.apply(w.log[c.at])
	}
	return c.updView
}

func byName[T any](m map[string]T) []T {
	var out []T
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// deploy is one pass of the deployment controller, which crashes after so many of
// its actions; below 0 it does not. It says whether something was written.
func (w *updWorld) deploy(fresh bool, crash int) bool {
	v := w.see("deployment", fresh)
	in := deployment.Observation{Deployment: w.d, Sets: byName(v.sets), Machines: byName(v.machines), Nodes: map[string]*corev1.Node{}, Complete: true, Expectations: w.unseen}
	for _, m := range v.machines {
		if n := m.Labels[v1alpha1.NodeLabelKey]; n != "" && n != w.hidden {
			in.Nodes[n] = v.nodes[n]
		}
	}
	w.unseen = w.unseen.Observe(v.find, true)
	var before deployment.Observation
	if w.frozen {
		before = updCopy(in)
	}
	dec := deployment.Plan(in, w.policy, w.now)
	if w.frozen {
		require.Empty(w.t, cmp.Diff(before, in), "what is observed is not changed")
		require.Equal(w.t, dec, deployment.Plan(in, w.policy, w.now), "the same view gives the same plan")
	}
	w.last = dec
	if dec.Reason != deployment.ReasonWriteNotSeen {
		require.Len(w.t, dec.Targets, len(v.sets))
	}
	wrote := dec.WriteStatus
	w.d.Status = dec.Status
	for i, a := range dec.Actions {
		if i == crash {
			w.unseen = nil
			w.see("deployment", true)
			return true
		}
		before := w.available()
		if !w.do(a) {
			break
		}
		wrote = true
		w.judge(before, a.String())
	}
	return wrote
}

// updCopy returns a deep copy of what is observed.
func updCopy(in deployment.Observation) deployment.Observation {
	out := in
	out.Deployment, out.Sets, out.Machines, out.Nodes = in.Deployment.DeepCopy(), nil, nil, map[string]*corev1.Node{}
	for _, s := range in.Sets {
		out.Sets = append(out.Sets, s.DeepCopy())
	}
	for _, m := range in.Machines {
		out.Machines = append(out.Machines, m.DeepCopy())
	}
	for name, n := range in.Nodes {
		out.Nodes[name] = n.DeepCopy()
	}
	return out
}

func (w *updWorld) do(a deployment.Action) bool {
	w.tell("  %s", a)
	switch a := a.(type) {
	case deployment.CreateSet:
		w.names++
		a.Set.UID, a.Set.Generation = types.UID("s"+strconv.Itoa(w.names)), 1
		a.Set.CreationTimestamp = metav1.NewTime(w.now.Add(time.Duration(w.names) * time.Second))
		a.Set.Name = "set" + strconv.Itoa(w.names)
		w.write(machine.KindSet, a.Set)
		w.unseen = w.unseen.Created(a.Set, w.now)
	case deployment.WriteSet:
		live := w.live.sets[a.Set.Name]
		if live == nil || live.ResourceVersion != a.Set.ResourceVersion {
			return false
		}
		if a.Set.Spec.Replicas != live.Spec.Replicas {
			a.Set.Generation++
		}
		a.Set.Status = live.Status
		w.write(machine.KindSet, a.Set)
		w.unseen = w.unseen.Updated(a.Set, w.now)
	case deployment.WriteMachine:
		live := w.live.machines[a.Machine.Name]
		if live == nil || live.ResourceVersion != a.Machine.ResourceVersion {
			return false
		}
		w.write(machine.KindMachine, a.Machine)
		w.unseen = w.unseen.Updated(a.Machine, w.now)
	case deployment.WriteNode:
		live := w.live.nodes[a.Node.Name]
		if live == nil || live.ResourceVersion != a.Before.ResourceVersion {
			return false
		}
		n := a.Node.DeepCopy()
		w.write(machine.KindNode, n)
		w.unseen = w.unseen.Updated(n, w.now)
	case deployment.WriteDeployment:
		w.d = a.Deployment
		w.d.Generation++
	case deployment.Look:
		var obj metav1.Object
		switch a.Kind {
		case machine.KindSet:
			obj = orNil(w.live.sets[a.Name])
		case machine.KindMachine:
			obj = orNil(w.live.machines[a.Name])
		case machine.KindNode:
			obj = orNil(w.live.nodes[a.Name])
		}
		w.unseen = w.unseen.Looked(a.Kind, a.Name, obj, w.now)
	case deployment.DeleteSet:
		w.remove(machine.KindSet, a.Name)
	default:
		w.t.Fatalf("unknown action %T", a)
	}
	return true
}

func orNil[T interface {
	comparable
	metav1.Object
}](o T) metav1.Object {
	var none T
	if o == none {
		return nil
	}
	return o
}

// control is one pass of the set controller over a set, which it reads live.
func (w *updWorld) control(name string, fresh bool) bool {
	s := w.live.sets[name]
	v := w.see("sets", fresh)
	var own []*v1alpha1.Machine
	for _, m := range byName(v.machines) {
		if o := metav1.GetControllerOf(m); o != nil && o.UID == s.UID {
			own = append(own, m)
		}
	}
	in := machineset.Observation{Set: s, Machines: own, Complete: true, Expectations: w.flights[s.UID].Observe(v.find, true), Nodes: map[string]machine.NodeView{}}
	for _, m := range own {
		in.Nodes[m.Labels[v1alpha1.NodeLabelKey]] = machine.NodeView{Looked: true, Node: v.nodes[m.Labels[v1alpha1.NodeLabelKey]]}
	}
	flight, wrote := in.Expectations, false
	dec := machineset.Plan(in, machineset.Policy{}, w.now)
	for _, a := range dec.Actions {
		before := w.available()
		switch a := a.(type) {
		case machineset.AddFinalizer, machineset.Sync:
			continue
		case machineset.Create:
			for range a.Count {
				w.names++
				m, err := machineset.NewMachine(s, fmt.Sprintf("m%02d", w.names))
				require.NoError(w.t, err)
				m.UID = types.UID(m.Name)
				if n := len(w.live.machines) + 1; n > max(w.most(), w.above) {
					w.fail("%d machines, %d may exist", n, w.most())
				}
				m.CreationTimestamp = metav1.NewTime(w.now.Add(time.Duration(w.names) * time.Second))
				flight = flight.Creating(machine.KindMachine, m.Name, w.now)
				w.write(machine.KindMachine, m)
			}
		case machineset.Delete:
			m := w.live.machines[a.Name]
			if m == nil || m.UID != a.UID || m.DeletionTimestamp != nil {
				continue
			}
			flight = flight.Deleting(machine.KindMachine, a.Name, a.UID, w.now)
			m = m.DeepCopy()
			m.DeletionTimestamp = new(metav1.NewTime(w.now))
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
			w.write(machine.KindMachine, m)
		case machineset.Look:
			flight = flight.Looked(machine.KindMachine, a.Name, w.live.machines[a.Name], w.now)
		}
		wrote = true
		w.tell("  %s: %s", name, a)
		w.judge(before, a.String())
	}
	w.flights[s.UID] = flight
	status := updStatus(s, own)
	if status.Replicas != s.Status.Replicas || status.AvailableReplicas != s.Status.AvailableReplicas || status.ObservedGeneration != s.Status.ObservedGeneration {
		next := s.DeepCopy()
		next.Status = status
		w.write(machine.KindSet, next)
		return true
	}
	return wrote
}

func updStatus(s *v1alpha1.MachineSet, own []*v1alpha1.Machine) v1alpha1.MachineSetStatus {
	st := v1alpha1.MachineSetStatus{Replicas: int32(len(own)), FullyLabeledReplicas: int32(len(own)), ObservedGeneration: s.Generation}
	for _, m := range own {
		if machineset.Available(m) && !machineset.Leaving(m) {
			st.AvailableReplicas++
			st.ReadyReplicas++
		}
	}
	return st
}

// live machines take one step each: they join, are drained, updated, fail, leave.
func (w *updWorld) live1(m *v1alpha1.Machine) bool {
	node := w.live.nodes[m.Labels[v1alpha1.NodeLabelKey]]
	phase := m.Status.CurrentStatus.Phase
	switch {
	case m.DeletionTimestamp != nil:
		w.remove(machine.KindMachine, m.Name)
		if node != nil {
			w.remove(machine.KindNode, node.Name)
		}
		return true
	case phase == v1alpha1.MachineFailed:
		return false
	case m.Labels[v1alpha1.NodeLabelKey] == "":
		w.write(machine.KindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n" + m.Name, UID: "n" + m.UID}})
		next := m.DeepCopy()
		next.Labels[v1alpha1.NodeLabelKey] = "n" + m.Name
		return w.phase(next, v1alpha1.MachineRunning, nil)
	case node == nil:
		return w.phase(m, v1alpha1.MachineFailed, nil)
	}
	if c, due := machine.UpdateCondition(node, w.now); due {
		w.condition(m, node, c)
		return true
	}
	step := updStep(node.Status.Conditions)
	switch {
	case step == v1alpha1.SelectedForUpdate && phase != v1alpha1.MachineInPlaceUpdating:
		n := node.DeepCopy()
		n.Spec.Unschedulable = true
		w.write(machine.KindNode, n)
		return w.phase(m, v1alpha1.MachineInPlaceUpdating, nil)
	case step == v1alpha1.SelectedForUpdate:
		w.condition(m, node, corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: "True", Reason: v1alpha1.ReadyForUpdate})
		return true
	case step == v1alpha1.ReadyForUpdate && node.Labels[v1alpha1.LabelKeyNodeUpdateResult] == "":
		n := node.DeepCopy()
		n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
		if w.fails(m) {
			n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateFailed
		} else {
			w.done[m.UID]++
		}
		w.write(machine.KindNode, n)
		return true
	case step == v1alpha1.UpdateSuccessful && phase == v1alpha1.MachineInPlaceUpdating:
		return w.phase(m, v1alpha1.MachineInPlaceUpdateSuccessful, node.Status.Conditions)
	case step == v1alpha1.UpdateFailed && phase == v1alpha1.MachineInPlaceUpdating:
		return w.phase(m, v1alpha1.MachineInPlaceUpdateFailed, node.Status.Conditions)
	case phase == v1alpha1.MachineInPlaceUpdateFailed && w.forever:
		return false
	case phase == v1alpha1.MachineInPlaceUpdateFailed:
		return w.phase(m, v1alpha1.MachineFailed, nil)
	case phase == v1alpha1.MachineInPlaceUpdateSuccessful:
		return w.phase(m, v1alpha1.MachineRunning, nil)
	case hasTaint(node) && !node.Spec.Unschedulable:
		n := node.DeepCopy()
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isCritical)
		w.write(machine.KindNode, n)
		return true
	}
	return false
}

func hasTaint(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isCritical) }

func isCritical(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNodeCriticalComponentsNotReady }

func updStep(conditions []corev1.NodeCondition) string {
	for _, c := range conditions {
		if c.Type == v1alpha1.NodeInPlaceUpdate {
			return c.Reason
		}
	}
	return ""
}

func (w *updWorld) phase(m *v1alpha1.Machine, p v1alpha1.MachinePhase, conditions []corev1.NodeCondition) bool {
	next := m.DeepCopy()
	next.Status.CurrentStatus.Phase = p
	if conditions != nil {
		next.Status.Conditions = slices.Clone(conditions)
	}
	w.tell("  %s is %s", m.Name, p)
	w.write(machine.KindMachine, next)
	return true
}

func (w *updWorld) condition(m *v1alpha1.Machine, node *corev1.Node, c corev1.NodeCondition) {
	n := node.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{c}
	w.write(machine.KindNode, n)
	next := m.DeepCopy()
	next.Status.Conditions = slices.Clone(n.Status.Conditions)
	w.write(machine.KindMachine, next)
}

// available returns how many machines are of use: they are Running, and nobody may
// drain their Nodes at any moment.
func (w *updWorld) available() int {
	n := 0
	for _, m := range w.live.machines {
		node := w.live.nodes[m.Labels[v1alpha1.NodeLabelKey]]
		if !machineset.Leaving(m) && machineset.Available(m) && node != nil {
			if _, selected := node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]; !selected {
				n++
			}
		}
	}
	return n
}

// least is how many machines have to be available.
func (w *updWorld) least() int { return int(w.d.Spec.Replicas - deployment.MaxUnavailable(w.d)) }

// judge checks the laws after one write.
func (w *updWorld) judge(before int, what string) {
	least := min(w.below, w.least())
	if after := w.available(); !w.lenient && after < before && after < least {
		w.fail("%d of %d machines are available, at least %d have to be: %s", after, before, least, what)
	}
	owned := map[types.UID]bool{}
	for _, s := range w.live.sets {
		owned[s.UID] = true
	}
	for _, m := range w.live.machines {
		controllers := 0
		for _, r := range m.OwnerReferences {
			if r.Controller != nil && *r.Controller && owned[r.UID] {
				controllers++
			}
		}
		if controllers != 1 {
			w.fail("%s is controlled %d times: %s", m.Name, controllers, what)
		}
	}
}

func (w *updWorld) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.story, "\n"))
}

// most is how many machines may exist.
func (w *updWorld) most() int {
	surge := 0
	if w.rolling {
		return int(w.d.Spec.Replicas + deployment.MaxSurge(w.d))
	}
	if w.d.Spec.Strategy.InPlaceUpdate.OrchestrationType == v1alpha1.OrchestrationTypeAuto {
		surge, _ = intstr.GetScaledValueFromIntOrPercent(w.d.Spec.Strategy.InPlaceUpdate.MaxSurge, int(w.d.Spec.Replicas), true)
	}
	return int(w.d.Spec.Replicas) + surge
}

// scaleTo changes the replicas, as a user does.
func (w *updWorld) scaleTo(n int) {
	w.tell("replicas are %d", n)
	asked := 0
	for _, s := range w.live.sets {
		asked += int(s.Spec.Replicas)
	}
	w.above = max(w.above, w.most(), asked, len(w.live.machines))
	w.below = min(w.below, w.least())
	w.d.Spec.Replicas = int32(n)
	w.below = min(w.below, w.least())
	w.d.Generation++
}

// template changes the template.
func (w *updWorld) template(class string) {
	w.tell("machines of class %s are wanted", class)
	w.d.Spec.Template = updTemplate(class)
	w.d.Generation++
}

// settle runs everything with fresh caches until nothing has changed for some
// minutes, and returns the number of rounds.
func (w *updWorld) settle(rounds int) int {
	w.t.Helper()
	quiet := 0
	for i := range rounds {
		w.now = w.now.Add(time.Minute)
		w.tell("round %d: %s", i+1, w.sizes())
		if quiet++; w.round() {
			quiet = 0
		}
		if quiet > 6 {
			return i
		}
	}
	w.fail("no fixed point")
	return rounds
}

// round lets each controller, and each machine, do one step with fresh caches.
func (w *updWorld) round() bool {
	changed := w.deploy(true, -1)
	for _, name := range slices.Sorted(maps.Keys(w.live.sets)) {
		changed = w.control(name, true) || changed
	}
	for _, m := range byName(w.live.machines) {
		if m := w.live.machines[m.Name]; m != nil {
			changed = w.live1(m) || changed
		}
	}
	return changed
}

func (w *updWorld) sizes() string {
	var parts []string
	for _, s := range byName(w.live.sets) {
		n := 0
		for _, m := range w.live.machines {
			if o := metav1.GetControllerOf(m); o != nil && o.UID == s.UID {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%s %d/%d", s.Name, s.Spec.Replicas, n))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", available %d", w.available())
}

// mustBeUpdated checks what is left when everything is over.
func (w *updWorld) mustBeUpdated() {
	w.t.Helper()
	total := 0
	for _, s := range byName(w.live.sets) {
		isNew := s.Spec.Template.Spec.Class.Name == w.d.Spec.Template.Spec.Class.Name
		if isNew && s.Spec.Replicas != w.d.Spec.Replicas || !isNew && s.Spec.Replicas != 0 {
			w.fail("%s has size %d at the end", s.Name, s.Spec.Replicas)
		}
		if isNew && machineset.ScaleUpDisabled(s) {
			w.fail("the new set may not grow")
		}
		total += int(s.Status.Replicas)
	}
	if total != int(w.d.Spec.Replicas) || len(w.live.machines) != total || w.available() != total {
		w.fail("%d machines, %d of them available, at the end", total, w.available())
	}
	for _, n := range w.live.nodes {
		for k := range n.Labels {
			w.fail("Node %s still has the label %s", n.Name, k)
		}
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 {
			w.fail("Node %s is still cordoned or tainted: %v", n.Name, n.Spec.Taints)
		}
	}
	for _, m := range w.live.machines {
		if machineset.Transferred(m) {
			w.fail("%s is not acknowledged", m.Name)
		}
	}
}

// rolled is a world whose first generation is there, and a new template is wanted.
func rolled(t *testing.T, seed uint64, d *v1alpha1.MachineDeployment) *updWorld {
	t.Helper()
	w := newUpdWorld(t, seed, d)
	w.settle(20)
	w.story = nil
	w.template("c2")
	return w
}
