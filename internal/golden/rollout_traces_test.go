// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type rolloutTracesIn struct {
	Name                                                       string
	MachineDeployment                                          machineDeployment
	DeploymentReconcilesPerRound, MachineSetReconcilesPerRound int
	NewMachinesNeverReady                                      bool
}

type traceSet struct {
	Class                   string
	Spec, Status, Available int32
}

type traceStep struct {
	Round                            int
	SpecAfterDeploymentReconcile     map[string]int32
	MachinesAlive, MachinesAvailable int
	Sets                             []traceSet
	MDStatus                         struct{ Replicas, Updated, Available, Unavailable int32 }
}

type rolloutTracesOut struct {
	Steps                                  []traceStep
	MaxMachinesAlive, MinMachinesAvailable int
	Error                                  *string
}

func (o rolloutTracesOut) last() traceStep { return o.Steps[len(o.Steps)-1] }

// rolloutTraces compares each step as long as MCM keeps its bounds. Where MCM does not (DS-1), the
// steps keep them and end where those of MCM end.
func rolloutTraces(in rolloutTracesIn, out rolloutTracesOut) ([]string, error) {
	sim, err := newSimulation(in.MachineDeployment)
	if err != nil {
		return nil, err
	}
	if err := sim.bringUp(); err != nil {
		return nil, err
	}
	change, err := in.change(out)
	if err != nil {
		return nil, err
	}
	got, may := rolloutTracesOut{Error: out.Error}, []toll{sim.bounds()}
	sim.neverReady = in.NewMachinesNeverReady
	if err := sim.edit(class("c2")); err != nil {
		return nil, err
	}
	for round := 1; len(got.Steps) < 3 || !got.still(); round++ {
		if round > 100 {
			return nil, errors.New("no end")
		}
		if round == 2 {
			if err := sim.edit(change); err != nil {
				return nil, err
			}
			may = append(may, toll{max(may[0].machines, sim.bounds().machines), min(may[0].available, sim.bounds().available)})
		}
		step := sim.round(in.DeploymentReconcilesPerRound, in.MachineSetReconcilesPerRound)
		step.Round = round
		got.add(step)
	}
	if r := got.breaks(may); r > 0 {
		return nil, fmt.Errorf("round %d breaks the bounds %v\n%s", r, may, sim.log())
	}
	if equal(out, got) {
		return nil, nil
	}
	if out.breaks(may) == 0 {
		return nil, fmt.Errorf("%w\n%s", same("the trace", out, got), sim.log())
	}
	if in.NewMachinesNeverReady {
		return []string{"DS-1"}, nil // it ends where no more may be done
	}
	return []string{"DS-1"}, same("the end", out.last().settled(), got.last().settled())
}

// breaks returns the first round in which there are more machines, or fewer
// available ones, than may be: in the first round, and in all others. It is 0 if
// there is none.
func (o rolloutTracesOut) breaks(may []toll) int {
	for i, s := range o.Steps {
		bounds := may[min(i, len(may)-1)]
		if s.MachinesAlive > int(bounds.machines) || s.MachinesAvailable < int(bounds.available) {
			return s.Round
		}
	}
	return 0
}

func (s traceStep) settled() traceStep {
	s.Round = 0
	s.Sets = slices.DeleteFunc(slices.Clone(s.Sets), func(x traceSet) bool { return x.Spec+x.Status == 0 })
	return s
}

// still says that the last three rounds were the same.
func (o rolloutTracesOut) still() bool {
	last := slices.Clone(o.Steps[len(o.Steps)-3:])
	for i := range last {
		last[i].Round = 0
	}
	return equal(last[0], last[1]) && equal(last[1], last[2])
}

func (o *rolloutTracesOut) add(s traceStep) {
	if len(o.Steps) == 0 {
		o.MaxMachinesAlive, o.MinMachinesAvailable = s.MachinesAlive, s.MachinesAvailable
	}
	o.Steps = append(o.Steps, s)
	o.MaxMachinesAlive = max(o.MaxMachinesAlive, s.MachinesAlive)
	o.MinMachinesAvailable = min(o.MinMachinesAvailable, s.MachinesAvailable)
}

var scaledFromTo = regexp.MustCompile(`scale (?:in|out) \d+->(\d+)`)

// change is what happens in the second round, by the name of the trace.
func (in rolloutTracesIn) change(out rolloutTracesOut) (func(*v1alpha1.MachineDeploymentSpec), error) {
	switch name := in.Name; {
	case strings.HasPrefix(name, "rolling n="), strings.HasPrefix(name, "surge overshoot"), name == "recreate", name == "new machines never become ready":
		return func(*v1alpha1.MachineDeploymentSpec) {}, nil
	case scaledFromTo.MatchString(name):
		n, err := strconv.Atoi(scaledFromTo.FindStringSubmatch(name)[1])
		return func(s *v1alpha1.MachineDeploymentSpec) { s.Replicas = int32(n) }, err
	case strings.HasPrefix(name, "scale to zero"):
		return func(s *v1alpha1.MachineDeploymentSpec) { s.Replicas = 0 }, nil
	case strings.HasPrefix(name, "pause in the middle"):
		// The name does not say what it is scaled to, but the end does.
		n := -surgeOf(in.MachineDeployment.object())
		for _, s := range out.last().Sets {
			n += s.Spec
		}
		return func(s *v1alpha1.MachineDeploymentSpec) { s.Paused, s.Replicas = true, n }, nil
	case strings.HasPrefix(name, "backtrack to the first template"):
		return class("c1"), nil
	case strings.HasPrefix(name, "roll over to a third template"):
		return class("c3"), nil
	default:
		return nil, fmt.Errorf("it is not known what happens in %q", name)
	}
}

func class(name string) func(*v1alpha1.MachineDeploymentSpec) {
	return func(s *v1alpha1.MachineDeploymentSpec) { s.Template.Spec.Class.Name = name }
}

func compareClasses(a, b traceSet) int { return cmp.Compare(a.Class, b.Class) }
