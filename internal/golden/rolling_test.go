// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type rollingStepOut struct {
	NewSetScaled, OldSetsScaledDown bool
	Replicas                        map[string]int32
	Events                          []string
	Error                           *string
}

// rolled is one step of a rolling update.
type rolled struct {
	Replicas map[string]int32
	Events   []string
}

func rollingStep(in world, out rollingStepOut) ([]string, error) {
	model := rollingModel(in, nil)
	if err := same("the model does not reproduce the vector", out, model); err != nil {
		return nil, err
	}
	seen := in.observation()
	for _, s := range seen.Sets {
		s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1"}
	}
	plan := decide(seen)
	got := rolled{sizesOf(plan), lastEvents(reports(plan.Actions))}
	may, ours := allowed(seen), tollOf(seen.Sets, got.Replicas)
	if ours.machines > may.machines || ours.available < may.available {
		return nil, fmt.Errorf("machines and available %v, allowed are %v\n%s", ours, may, plan)
	}
	if equal(rolled{out.Replicas, lastEvents(out.Events)}, got) {
		return nil, nil
	}
	var deviations []string
	better := rollingModel(in, without("DS-11"))
	want := rolled{better.Replicas, lastEvents(better.Events)}
	if !equal(better, out) {
		deviations = append(deviations, "DS-11")
	}
	if !equal(want, got) {
		more := rollingDefects(seen, want.Replicas, got.Replicas)
		if len(more) == 0 {
			return nil, fmt.Errorf("%w\n%s", same("no defect shows", want, got), plan)
		}
		deviations = append(deviations, more...)
	}
	return deviations, nil
}

// sizesOf are the sizes of sets after a decision.
func sizesOf(plan deployment.Decision) map[string]int32 {
	sizes := map[string]int32{}
	for _, t := range plan.Targets {
		sizes[t.Name] = t.To
	}
	return sizes
}

// lastEvents are those of each set's last change, as we write a set once where the
// reference writes it twice.
func lastEvents(events []string) []string {
	last := map[string]string{}
	for _, e := range events {
		_, rest, _ := strings.Cut(e, "machine set ")
		name, _, _ := strings.Cut(rest, " ")
		last[name] = e
	}
	return slices.Sorted(maps.Values(last))
}

// A toll is what sizes come to: how many machines there may be at most, and how
// many of them are available at least. Machines of a set beyond its present size
// are on their way out, those that are not available first.
type toll struct{ machines, available int32 }

func tollOf(sets []*v1alpha1.MachineSet, size map[string]int32) toll {
	var t toll
	for _, s := range sets {
		n := size[s.Name]
		t.available += min(s.Status.AvailableReplicas, n)
		if leaving := s.Status.Replicas - s.Spec.Replicas; leaving > 0 && n > s.Spec.Replicas {
			n += leaving
		}
		t.machines += max(n, s.Status.Replicas)
	}
	return t
}

// allowed is the toll that a step has to keep to: the bounds, or what it was
// before.
func allowed(seen deployment.Observation) toll {
	d, size := seen.Deployment, map[string]int32{}
	for _, s := range seen.Sets {
		size[s.Name] = s.Spec.Replicas
	}
	before := tollOf(seen.Sets, size)
	surge, unavailable := max(0, surgeOf(d)), unavailableOf(d)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return toll{max(before.machines, d.Spec.Replicas+surge), min(before.available, d.Spec.Replicas-unavailable)}
}

// rollingModel takes one step by what the sets have reported: the new set first,
// the old ones only if it does not change. Mended (DS-11), it goes on if more are
// available in an old set than it was asked for, and counts no more than those.
func rollingModel(in world, m mended) rollingStepOut {
	d := in.MachineDeployment.object()
	desired, surge := d.Spec.Replicas, surgeOf(d)
	least := desired - unavailableOf(d)
	old := slices.Clone(in.OldMSs)
	slices.SortStableFunc(old, func(a, b *machineSet) int {
		return cmp.Or(cmp.Compare(a.CreatedOffset, b.CreatedOffset), strings.Compare(a.Name, b.Name))
	})
	o := rollingStepOut{Replicas: map[string]int32{}}
	var reported, asked int32
	for _, s := range append(slices.Clone(old), in.NewMS) {
		o.Replicas[s.Name] = s.Replicas
		reported += s.Status.Replicas
		asked += s.Replicas
	}
	to := in.NewMS.Replicas
	switch {
	case to > desired:
		to = desired
	case to < desired && reported < desired+surge:
		to += min(desired+surge-reported, desired-to)
	}
	if to != in.NewMS.Replicas {
		o.NewSetScaled = true
		o.size(in.NewMS.Name, to)
		return o
	}
	if asked == in.NewMS.Replicas {
		return o
	}
	budget := asked - least - (in.NewMS.Replicas - in.NewMS.Status.AvailableReplicas)
	if budget > 0 {
		o.reduce(old, in.NewMS, budget, least, m)
	}
	return o
}

func (o *rollingStepOut) size(name string, to int32) {
	word := "up"
	if to < o.Replicas[name] {
		word = "down"
	}
	o.Replicas[name] = to
	o.Events = append(o.Events, fmt.Sprintf("Normal ScalingMachineSet Scaled %s machine set %s to %d", word, name, to))
}

// reduce takes away machines that are not available, and then available ones.
func (o *rollingStepOut) reduce(old []*machineSet, newSet *machineSet, budget, least int32, m mended) {
	active := slices.DeleteFunc(slices.Clone(old), func(s *machineSet) bool { return s.Replicas == 0 })
	var cleaned, down int32
	for _, s := range active {
		k := min(budget-cleaned, s.Replicas-s.Status.AvailableReplicas)
		if m["DS-11"] {
			k = max(0, k)
		}
		if cleaned >= budget {
			break
		}
		if k < 0 {
			return // more are available than asked for: an error that no caller reads
		}
		if k > 0 {
			o.size(s.Name, s.Replicas-k)
			cleaned += k
		}
	}
	available := newSet.Status.AvailableReplicas
	for _, s := range active {
		n := s.Status.AvailableReplicas
		if m["DS-11"] {
			n = min(n, s.Replicas)
		}
		available += n
	}
	for _, s := range active {
		k := min(o.Replicas[s.Name], available-least-down)
		if k > 0 {
			o.size(s.Name, o.Replicas[s.Name]-k)
			down += k
		}
	}
	o.OldSetsScaledDown = cleaned+down > 0
}

// rollingDefects says which defects show in a step that MCM would take
// if it knew of DS-11.
//
//	DS-1   there may be more machines than are allowed: those that are asked for and not reported, or are on their way out, are forgotten
//	DS-10  fewer are available than have to be: machines that are on their way out are counted
//
// A new set that has more machines than it wants shows both. Once it has grown, the number
// of machines that it deletes is unknown, so this module waits. Its available machines are
// no reason to delete others.
func rollingDefects(seen deployment.Observation, theirs, ours map[string]int32) []string {
	var out []string
	may, reference, s := allowed(seen), tollOf(seen.Sets, theirs), seen.Sets[0]
	waits := s.Status.Replicas > s.Spec.Replicas && theirs[s.Name] > s.Spec.Replicas && ours[s.Name] == s.Spec.Replicas
	if reference.machines > may.machines || waits {
		out = append(out, "DS-1")
	}
	fewer := false
	for name, n := range ours {
		fewer = fewer || n < theirs[name]
	}
	if reference.available < may.available || s.Status.AvailableReplicas > s.Spec.Replicas && !fewer {
		out = append(out, "DS-10")
	}
	return out
}

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
