// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	sdkmachine "github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A simulation is a deployment with its sets and machines, and caches that are
// up to date.
type simulation struct {
	d          *v1alpha1.MachineDeployment
	sets       []*v1alpha1.MachineSet
	machines   []*v1alpha1.Machine
	neverReady bool // machines of class c2
	now        time.Time
	made       int
	lines      []string
}

func newSimulation(g machineDeployment) *simulation {
	s := &simulation{d: g.object(), now: now}
	s.d.Generation = 1
	return s
}

func (s *simulation) log() string { return strings.Join(s.lines, "\n") }

// bounds are how many machines there may be, and how many have to be available.
func (s *simulation) bounds() toll {
	t := toll{machines: s.d.Spec.Replicas + max(0, surgeOf(s.d))}
	if s.d.Spec.Strategy.Type != v1alpha1.RecreateMachineDeploymentStrategyType {
		t.available = s.d.Spec.Replicas - unavailableOf(s.d)
	}
	return t
}

func (s *simulation) class(name string) { s.d.Spec.Template.Spec.Class.Name = name; s.d.Generation++ }
func (s *simulation) replicas(n int32)  { s.d.Spec.Replicas = n; s.d.Generation++ }
func (s *simulation) pause()            { s.d.Spec.Paused = true; s.d.Generation++ }

// bringUp runs until the first set has all its machines.
func (s *simulation) bringUp() error {
	for range 10 {
		if _, err := s.round(2, 2); err != nil {
			return err
		}
	}
	if len(s.sets) != 1 || s.sets[0].Status.AvailableReplicas != s.d.Spec.Replicas || !deployment.Complete(s.d, s.d.Status) {
		return fmt.Errorf("the first set does not come up:\n%s", s.log())
	}
	s.lines = nil
	return nil
}

// round is one round of a trace.
func (s *simulation) round(ofDeployment, ofSets int) (traceStep, error) {
	step := traceStep{SpecAfterDeploymentReconcile: map[string]int32{}}
	for range ofDeployment {
		if err := s.reconcile(); err != nil {
			return step, err
		}
	}
	for _, x := range s.sets {
		step.SpecAfterDeploymentReconcile[x.Spec.Template.Spec.Class.Name] = x.Spec.Replicas
	}
	for range ofSets {
		if err := s.reconcileSets(); err != nil {
			return step, err
		}
	}
	for _, m := range s.machines {
		if m.DeletionTimestamp == nil {
			step.MachinesAlive++
			step.MachinesAvailable += int(one(sdkmachine.TraitsOf(m.Status.CurrentStatus.Phase).Available))
		}
	}
	s.settle()
	if err := s.reconcileSets(); err != nil {
		return step, err
	}
	for _, x := range s.sets {
		step.Sets = append(step.Sets, traceSet{x.Spec.Template.Spec.Class.Name, x.Spec.Replicas, x.Status.Replicas, x.Status.AvailableReplicas})
	}
	slices.SortFunc(step.Sets, compareClasses)
	st := s.d.Status
	step.MDStatus.Replicas, step.MDStatus.Updated = st.Replicas, st.UpdatedReplicas
	step.MDStatus.Available, step.MDStatus.Unavailable = st.AvailableReplicas, st.UnavailableReplicas
	s.now = s.now.Add(time.Minute)
	return step, nil
}

// reconcile is one pass over the deployment.
func (s *simulation) reconcile() error {
	plan := deployment.Decide(deployment.Observation{Deployment: s.d, Sets: s.sets, Machines: s.machines, Complete: true}, deployment.Policy{}, s.now)
	s.lines = append(s.lines, plan.String())
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case deployment.WriteDeployment:
			a.Deployment.Status = s.d.Status
			s.d = a.Deployment
		case deployment.CreateSet:
			s.made++
			a.Set.UID, a.Set.Generation = types.UID(fmt.Sprint("uid-set-", s.made)), 1
			a.Set.CreationTimestamp = metav1.NewTime(s.now.Add(time.Duration(s.made) * time.Second))
			s.sets = append(s.sets, a.Set)
		case deployment.WriteSet:
			i := slices.IndexFunc(s.sets, func(x *v1alpha1.MachineSet) bool { return x.UID == a.Set.UID })
			a.Set.Generation++
			s.sets[i] = a.Set
		case deployment.DeleteSet:
			s.sets = slices.DeleteFunc(s.sets, func(x *v1alpha1.MachineSet) bool { return x.UID == a.UID })
		default:
			return fmt.Errorf("nobody carries out %s", a)
		}
	}
	if plan.WriteStatus {
		s.d.Status = plan.Status
	}
	return nil
}

// reconcileSets is one pass over each set.
func (s *simulation) reconcileSets() error {
	for i, set := range s.sets {
		var own []*v1alpha1.Machine
		for _, m := range s.machines {
			if metav1.IsControlledBy(m, set) {
				own = append(own, m)
			}
		}
		in := machineset.Observation{Set: set, Machines: own, Complete: true}
		plan := machineset.Decide(in, machineset.Policy{}, s.now)
		next := set.DeepCopy()
		for _, a := range plan.Actions {
			s.lines = append(s.lines, "  "+set.Name+": "+a.String())
			switch a := a.(type) {
			case machineset.SetFinalizers:
				next.Finalizers = a.Finalizers
			case machineset.Create:
				if err := s.create(set, a.Count); err != nil {
					return err
				}
			case machineset.Delete:
				s.terminate(a.UID)
			case machineset.Sync:
			default:
				return fmt.Errorf("nobody carries out %s", a)
			}
		}
		next.Status, _ = machineset.Status(in, machineset.Failure{}, s.now)
		s.sets[i] = next
	}
	return nil
}

func (s *simulation) create(set *v1alpha1.MachineSet, n int) error {
	for range n {
		s.made++
		m, err := machineset.NewMachine(set, fmt.Sprintf("%04d", s.made))
		if err != nil {
			return err
		}
		m.UID, m.CreationTimestamp = types.UID("uid-"+m.Name), metav1.NewTime(s.now)
		m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
		s.machines = append(s.machines, m)
	}
	return nil
}

func (s *simulation) terminate(uid types.UID) {
	for i, m := range s.machines {
		if m.UID == uid {
			m = m.DeepCopy()
			m.DeletionTimestamp = &metav1.Time{Time: s.now}
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
			s.machines[i] = m
		}
	}
}

// settle lets machines on their way out vanish, and the others become Running.
func (s *simulation) settle() {
	s.machines = slices.DeleteFunc(s.machines, func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
	for i, m := range s.machines {
		if s.neverReady && m.Spec.Class.Name == "c2" {
			continue
		}
		m = m.DeepCopy()
		m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
		s.machines[i] = m
	}
}
