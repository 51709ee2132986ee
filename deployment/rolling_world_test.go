// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// rollNow is the time at which the tests of roll-outs begin.
var rollNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rollPolicy leaves the Nodes alone.
var rollPolicy = deployment.Policy{Discourage: deployment.DiscourageNone}

// rollDeployment wants machines of class c1.
func rollDeployment(replicas int32, kind v1alpha1.MachineDeploymentStrategyType, surge, unavailable intstr.IntOrString) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.Namespace, d.UID, d.Generation = "md", "ns", "uid-md", 1
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	d.Spec.Template.Labels = map[string]string{"app": "w"}
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c1"}
	d.Spec.Strategy.Type = kind
	u := v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	switch kind {
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: u}
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		d.Spec.Strategy.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: u, OrchestrationType: v1alpha1.OrchestrationTypeAuto}
	}
	return d
}

func rolling(replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	return rollDeployment(replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType, intstr.FromInt32(surge), intstr.FromInt32(unavailable))
}

// rollSet is a set of a class that has reported.
func rollSet(d *v1alpha1.MachineDeployment, class string, spec, replicas, available int32) *v1alpha1.MachineSet {
	d = d.DeepCopy()
	d.Spec.Template.Spec.Class.Name = class
	s := deployment.NewSet(d, nil, spec)
	s.Name, s.UID, s.Generation = "md-"+class, types.UID(class), 1
	s.Finalizers = []string{v1alpha1.MCMFinalizerName}
	s.Annotations[v1alpha1.RevisionAnnotation] = "1"
	if deployment.EqualIgnoreHash(s.Spec.Template, d.Spec.Template) && class == "c1" {
		s.Annotations[v1alpha1.RevisionAnnotation] = "2"
	}
	s.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	s.Status = v1alpha1.MachineSetStatus{Replicas: replicas, AvailableReplicas: available, ReadyReplicas: available, FullyLabeledReplicas: replicas, ObservedGeneration: 1}
	return s
}

// rollMachine is a machine of a set.
func rollMachine(s *v1alpha1.MachineSet, name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace, m.UID = name, s.Namespace, types.UID("uid-"+name)
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-" + name}
	maps.Copy(m.Labels, s.Spec.Template.Labels)
	m.Spec = *s.Spec.Template.Spec.DeepCopy()
	m.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(rollNow.Add(-time.Hour))}
	return m
}

// rollMachines fit the statuses of sets: the first ones are available.
func rollMachines(sets ...*v1alpha1.MachineSet) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, s := range sets {
		if s == nil {
			continue
		}
		for i := range min(max(0, s.Status.Replicas), 50) {
			phase := v1alpha1.MachineRunning
			if i >= s.Status.AvailableReplicas {
				phase = v1alpha1.MachinePending
			}
			out = append(out, rollMachine(s, fmt.Sprintf("%s-%02d", s.Name, i), phase))
		}
	}
	return out
}

// rollSee is a complete view of sets and the machines that fit them.
func rollSee(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Observation {
	return deployment.Observation{Deployment: d, Sets: sets, Machines: rollMachines(sets...), Complete: true}
}

func rollPlan(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Decision {
	return deployment.Plan(rollSee(d, sets...), rollPolicy, rollNow)
}

// rollLines are the actions on sets.
func rollLines(dec deployment.Decision) []string {
	var out []string
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case deployment.WriteSet:
			if a.From != a.Set.Spec.Replicas {
				out = append(out, a.String())
			}
		case deployment.CreateSet, deployment.DeleteSet:
			out = append(out, a.String())
		}
	}
	return out
}

func rollReasons(dec deployment.Decision) []machinist.Reason {
	var out []machinist.Reason
	for _, h := range dec.Holds {
		out = append(out, h.Reason)
	}
	return out
}

func rollVictims(t deployment.Target) []string {
	var out []string
	for _, v := range t.Victims {
		out = append(out, v.Machine.Name)
	}
	return out
}

// A rollWorld plays one deployment: one plan, then one pass of each set, then a
// minute passes.
type rollWorld struct {
	t      *testing.T
	d      *v1alpha1.MachineDeployment
	sets   []*v1alpha1.MachineSet
	all    []*v1alpha1.Machine
	nodes  map[string]*corev1.Node
	now    time.Time
	names  int
	policy deployment.Policy
	last   deployment.Decision
	log    strings.Builder

	left   []string                  // machines that were deleted, in that order
	grow   func(m *v1alpha1.Machine) // lets a machine that is not available get on
	ageing func(m *v1alpha1.Machine) // happens to every machine each minute
	most   int                       // machines there ever were
	least  int                       // available machines there ever were, since it was reset
}

func newRollWorld(t *testing.T, d *v1alpha1.MachineDeployment) *rollWorld {
	w := &rollWorld{t: t, d: d, now: rollNow, policy: rollPolicy}
	w.grow = func(m *v1alpha1.Machine) { w.become(m, v1alpha1.MachineRunning) }
	w.run(20)
	require.Equal(t, deployment.ReasonComplete, w.last.Reason)
	w.most, w.least = len(w.all), w.available()
	w.log.Reset()
	return w
}

func (w *rollWorld) become(m *v1alpha1.Machine, phase v1alpha1.MachinePhase) {
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(w.now)}
	m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful}
}

func (w *rollWorld) available() int {
	n := 0
	for _, m := range w.all {
		if !machineset.Leaving(m) && machineset.AvailableFor(m, time.Duration(w.d.Spec.MinReadySeconds)*time.Second, w.now) {
			n++
		}
	}
	return n
}

// template asks for machines of another class.
func (w *rollWorld) template(class string) {
	w.d.Spec.Template.Spec.Class.Name = class
	w.d.Generation++
}

func (w *rollWorld) scale(replicas int32) {
	w.d.Spec.Replicas = replicas
	w.d.Generation++
	w.least = min(w.least, int(replicas))
}

func (w *rollWorld) see() deployment.Observation {
	return deployment.Observation{Deployment: w.d, Sets: w.sets, Machines: w.all, Nodes: w.nodes, Complete: true}
}

// step says whether anything was done or happened.
func (w *rollWorld) step() bool {
	w.t.Helper()
	w.last = deployment.Plan(w.see(), w.policy, w.now)
	w.d.Status = w.last.Status
	fmt.Fprintf(&w.log, "%s  %s\n", w.now.Format("15:04"), w)
	for _, a := range w.last.Actions {
		fmt.Fprintf(&w.log, "       %s\n", a)
	}
	for _, h := range w.last.Holds {
		fmt.Fprintf(&w.log, "       %s\n", h)
	}
	for _, s := range w.sets {
		_, err := w.last.Target(s.UID)
		require.NoError(w.t, err)
	}
	moved := len(w.last.Actions) > 0
	for _, a := range w.last.Actions {
		w.act(a)
	}
	for _, s := range slices.Clone(w.sets) {
		moved = w.control(s) || moved
	}
	w.most, w.least = max(w.most, len(w.all)), min(w.least, w.available())
	w.now = w.now.Add(time.Minute)
	for _, m := range slices.Clone(w.all) {
		moved = w.live(m) || moved
	}
	return moved
}

func (w *rollWorld) run(steps int) {
	w.t.Helper()
	for range steps {
		if !w.step() && w.last.NextCheck.IsZero() {
			return
		}
	}
}

// String shows wanted/machines/available of each class.
func (w *rollWorld) String() string {
	var out []string
	for _, s := range w.sets {
		c := machineset.Count(s, w.of(s), nil, w.now)
		out = append(out, fmt.Sprintf("%s %d/%d/%d", s.Spec.Template.Spec.Class.Name, s.Spec.Replicas, c.Machines, c.Available))
	}
	return strings.Join(out, "  ")
}

func (w *rollWorld) of(s *v1alpha1.MachineSet) []*v1alpha1.Machine {
	return slices.DeleteFunc(slices.Clone(w.all), func(m *v1alpha1.Machine) bool { return !metav1.IsControlledBy(m, s) })
}

// class returns the set of a class.
func (w *rollWorld) class(name string) *v1alpha1.MachineSet {
	for _, s := range w.sets {
		if s.Spec.Template.Spec.Class.Name == name {
			return s
		}
	}
	return nil
}

func (w *rollWorld) act(a deployment.Action) {
	switch a := a.(type) {
	case deployment.WriteDeployment:
		a.Deployment.Status = w.d.Status
		w.d = a.Deployment
	case deployment.CreateSet:
		w.names++
		a.Set.UID, a.Set.Generation = types.UID(fmt.Sprint("set-", w.names)), 1
		a.Set.CreationTimestamp = metav1.NewTime(w.now)
		a.Set.Finalizers = []string{v1alpha1.MCMFinalizerName}
		w.sets = append(w.sets, a.Set)
	case deployment.WriteSet:
		i := slices.IndexFunc(w.sets, func(s *v1alpha1.MachineSet) bool { return s.UID == a.Set.UID })
		a.Set.Generation = w.sets[i].Generation + 1
		w.sets[i] = a.Set
	case deployment.DeleteSet:
		w.sets = slices.DeleteFunc(w.sets, func(s *v1alpha1.MachineSet) bool { return s.UID == a.UID })
	case deployment.WriteNode:
		w.nodes[a.Node.Name] = a.Node
	case deployment.WriteMachine:
		i := slices.IndexFunc(w.all, func(m *v1alpha1.Machine) bool { return m.UID == a.Machine.UID })
		w.all[i] = a.Machine
	default:
		w.t.Fatalf("unknown action %T", a)
	}
}

// control is one pass of the set controller.
func (w *rollWorld) control(s *v1alpha1.MachineSet) bool {
	in := machineset.Observation{Set: s, Machines: w.of(s), Complete: true}
	dec := machineset.Plan(in, machineset.Policy{}, w.now)
	for _, a := range dec.Actions {
		switch a := a.(type) {
		case machineset.Create:
			for range a.Count {
				w.names++
				m := rollMachine(s, fmt.Sprintf("%s-%03d", s.Spec.Template.Spec.Class.Name, w.names), "")
				m.CreationTimestamp = metav1.NewTime(w.now)
				w.all = append(w.all, m)
				if w.nodes != nil {
					n := &corev1.Node{}
					n.Name = m.Labels[v1alpha1.NodeLabelKey]
					w.nodes[n.Name] = n
				}
			}
		case machineset.Delete:
			for _, m := range w.all {
				if m.UID == a.UID {
					m.DeletionTimestamp = new(metav1.NewTime(w.now))
					m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
					w.left = append(w.left, m.Name)
				}
			}
			fmt.Fprintf(&w.log, "       %s\n", a)
		}
	}
	in.Machines = w.of(s)
	status := machineset.Status(in, machineset.Failure{}, w.now)
	changed := machineset.StatusChanged(s.Status, status)
	s.Status = status
	return changed || len(dec.Actions) > 0
}

// live lets a minute pass for a machine.
func (w *rollWorld) live(m *v1alpha1.Machine) bool {
	before := m.Status.CurrentStatus.Phase
	switch {
	case m.DeletionTimestamp != nil:
		w.all = slices.DeleteFunc(w.all, func(x *v1alpha1.Machine) bool { return x == m })
		return true
	case machineset.Available(m):
	default:
		w.grow(m)
	}
	if w.ageing != nil {
		w.ageing(m)
	}
	return m.Status.CurrentStatus.Phase != before
}
