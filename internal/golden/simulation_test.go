// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A simulation is a world whose controllers take the turns of a trace: so many for the
// deployment, then so many for each set, and then machines come up and go.
type simulation struct {
	*deploymenttest.World
	name         string         // of the deployment
	ofDeployment int            // turns that are left to it
	ofSets       int            // turns of each set
	taken        map[string]int // turns that a set has taken
	neverReady   bool           // machines of class c2
	lines        []string
}

const (
	turns   = 3 * time.Second  // one missed turn after the other is a second later
	changes = 20 * time.Second // that machines need
)

func newSimulation(g machineDeployment) (*simulation, error) {
	d, s := g.object(), &simulation{}
	s.name = d.Name
	var err error
	s.World, err = deploymenttest.New(d, deploymenttest.Model{
		Start: now,
		Join: func(m *v1alpha1.Machine) (time.Duration, bool) {
			return changes / 2, !s.neverReady || m.Spec.Class.Name != "c2"
		},
		Leave: func(*v1alpha1.Machine) time.Duration { return changes / 2 },
		Idle:  s.misses,
		OnDecision: func(_ deployment.Observation, d deployment.Decision) {
			s.lines = append(s.lines, d.String())
		},
		OnSetDecision: func(in machineset.Observation, d machineset.Decision) {
			s.lines = append(s.lines, "  "+in.Set.Name+": "+d.String())
		},
	})
	return s, err
}

func (s *simulation) log() string { return strings.Join(s.lines, "\n") }

// misses reports whether a controller has taken its turns.
func (s *simulation) misses(controller string) bool {
	switch controller {
	case "machine":
		return false
	case s.name:
		s.ofDeployment--
		return s.ofDeployment < 0
	default:
		s.taken[controller]++
		return s.taken[controller] > s.ofSets
	}
}

// let gives the controllers so many turns, and lets time pass.
func (s *simulation) let(ofDeployment, ofSets int, pass time.Duration) {
	s.ofDeployment, s.ofSets, s.taken = ofDeployment, ofSets, map[string]int{}
	end := s.Now().Add(pass)
	s.Run(pass)
	s.Wait(end.Sub(s.Now()))
}

// bounds are how many machines there may be, and how many have to be available.
func (s *simulation) bounds() toll {
	d := s.Deployment()
	t := toll{machines: d.Spec.Replicas + max(0, surgeOf(d))}
	if d.Spec.Strategy.Type != v1alpha1.RecreateMachineDeploymentStrategyType {
		t.available = d.Spec.Replicas - unavailableOf(d)
	}
	return t
}

func (s *simulation) edit(change func(*v1alpha1.MachineDeploymentSpec)) error {
	return s.Edit(func(d *v1alpha1.MachineDeployment) { change(&d.Spec) })
}

// bringUp runs until the first set has all its machines.
func (s *simulation) bringUp() error {
	for range 10 {
		s.round(2, 2)
	}
	if d := s.Deployment(); len(s.Sets()) != 1 || s.Sets()[0].Status.AvailableReplicas != d.Spec.Replicas || !deployment.Complete(d, d.Status) {
		return fmt.Errorf("the first set does not come up:\n%s", s.log())
	}
	s.lines = nil
	return nil
}

// round is one round of a trace.
func (s *simulation) round(ofDeployment, ofSets int) traceStep {
	step := traceStep{SpecAfterDeploymentReconcile: map[string]int32{}}
	s.let(ofDeployment, 0, turns)
	for _, x := range s.Sets() {
		step.SpecAfterDeploymentReconcile[x.Spec.Template.Spec.Class.Name] = x.Spec.Replicas
	}
	s.let(0, ofSets, turns)
	for _, m := range s.Machines() {
		if m.DeletionTimestamp == nil {
			step.MachinesAlive++
			step.MachinesAvailable += int(one(facts.TraitsOf(m.Status.CurrentStatus.Phase).Available))
		}
	}
	s.let(0, 0, changes)
	s.let(0, 1, turns)
	for _, x := range s.Sets() {
		step.Sets = append(step.Sets, traceSet{x.Spec.Template.Spec.Class.Name, x.Spec.Replicas, x.Status.Replicas, x.Status.AvailableReplicas})
	}
	slices.SortFunc(step.Sets, compareClasses)
	st := s.Deployment().Status
	step.MDStatus.Replicas, step.MDStatus.Updated = st.Replicas, st.UpdatedReplicas
	step.MDStatus.Available, step.MDStatus.Unavailable = st.AvailableReplicas, st.UnavailableReplicas
	s.Wait(time.Minute - 3*turns - changes)
	return step
}
