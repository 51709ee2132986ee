// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A sequence is a rollout that is played to its end and told line by line.
type sequence struct {
	text   string // of its deployment, as in a scenario
	model  deploymenttest.Model
	events []sequenceEvent
	stops  bool // it does not end with all machines new
	places int  // of the provider; 0: it has room for all
}

// A sequenceEvent happens some time after the new template was given.
type sequenceEvent struct {
	after time.Duration
	text  string
	do    func(p *sequenceRun)
}

// sequenceRun is a sequence while it is played.
type sequenceRun struct {
	*rollout
	s     sequence
	text  strings.Builder
	last  string
	start time.Time
}

func (s sequence) deployment() *v1alpha1.MachineDeployment {
	return newScenario(s.text + " want=c1").in.Deployment
}

// run plays the sequence and returns its text.
func (s sequence) run(t testing.TB) string {
	var r *rollout
	places := math.MaxInt
	m := s.model
	if s.places > 0 {
		m.Create = limit(&r, &places)
	}
	r = newRollout(t, s.deployment(), m)
	p := &sequenceRun{rollout: r, s: s, start: r.Now()}
	places = s.places
	p.linef("%s", s.title())
	p.line("now machines of class c2 are wanted")
	p.class("c2")
	events := s.events
	for steps := 0; ; steps++ {
		require.Less(t, steps, 2000, "no fixed point:\n%s", p.text.String())
		for len(events) > 0 && !p.Now().Before(p.start.Add(events[0].after)) {
			p.waits()
			p.line("now " + events[0].text)
			events[0].do(p)
			events = events[1:]
		}
		if strings.HasPrefix(s.text, "manual") {
			p.selectByHand()
		}
		f, ok := p.Step()
		if ok {
			p.frame(f)
			continue
		}
		if len(events) == 0 {
			break
		}
		p.Wait(p.start.Add(events[0].after).Sub(p.Now()))
	}
	p.end()
	return p.text.String()
}

func (s sequence) title() string {
	d, words := s.deployment(), strings.Fields(s.text)
	what := string(d.Spec.Strategy.Type)
	if u := d.Spec.Strategy.InPlaceUpdate; u != nil {
		what += fmt.Sprintf(" (%s)", u.OrchestrationType)
	}
	if len(words) > 2 {
		what += fmt.Sprintf(", %s more and %s less", words[2][1:], words[3][1:])
	}
	return fmt.Sprintf("# %d machines, %s", d.Spec.Replicas, what)
}

func (p *sequenceRun) line(text string) { p.text.WriteString(text + "\n") }

func (p *sequenceRun) linef(format string, args ...any) { p.line(fmt.Sprintf(format, args...)) }

// selectByHand is the user who lets one machine after the other be updated.
func (p *sequenceRun) selectByHand() {
	if slices.ContainsFunc(p.Nodes(), func(n *corev1.Node) bool { return n.Labels[selKey] != "" }) {
		return
	}
	if selected := p.selectOne(); selected != "" {
		p.line(p.shortName("    the user selects " + selected))
	}
}

// frame tells a step in one line, if something was decided or is waited for.
func (p *sequenceRun) frame(f deploymenttest.Frame) {
	var done []string
	for _, s := range f.Sets {
		done = append(done, setWords(s)...)
	}
	if f.Decided {
		done = append(done, decisionWords(f.Decision)...)
	}
	text := p.shortName(strings.Join(done, "; "))
	if text == "" || text == p.last {
		return
	}
	p.last = text
	p.linef("%s  %s | %s", p.since(f.At), p.sizes(f), text)
}

func (p *sequenceRun) since(at time.Time) string {
	d := at.Sub(p.start)
	return fmt.Sprintf("%3d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// setWords tells what a set does, but for finalizers.
func setWords(s deploymenttest.SetDecision) []string {
	var out grouped
	for _, a := range s.Decision.Actions {
		switch a := a.(type) {
		case machinist.Create:
			out.add(fmt.Sprintf("%s creates %d", s.Name, a.Count), "")
		case machinist.Delete:
			why := strings.TrimPrefix(a.Message, "chosen by ")
			if a.Reason != "TooManyMachines" && a.Reason != "MarkedForDeletion" {
				why = string(a.Reason)
			}
			out.add(s.Name+" deletes by "+why, a.Object.GetName())
		case machinist.Update:
			if m, ok := a.Object.(*v1alpha1.Machine); ok {
				out.add(s.Name+" syncs", m.Name)
			}
		}
	}
	return out.lines()
}

// decisionWords tells what was decided, or else what is waited for.
func decisionWords(d deployment.Decision) []string {
	var out grouped
	for _, a := range d.Actions {
		u, _ := a.(machinist.Update)
		switch o := u.Object.(type) {
		case *corev1.Node:
			out.add(strings.Join(u.Changes, ", ")+": Nodes", o.Name)
		case *v1alpha1.Machine:
			out.add(strings.Join(u.Changes, ", ")+":", o.Name)
		default:
			out.add(a.String(), "")
		}
	}
	if d.Reason == deployment.ReasonComplete {
		out.add("complete", "")
	}
	if len(d.Actions) == 0 {
		for _, h := range d.Holds {
			out.add(string(h.Reason), h.Subject)
		}
	}
	lines := out.lines()
	if len(d.Actions) == 0 && len(d.Holds) > 0 {
		return []string{"waits: " + strings.Join(lines, ", ")}
	}
	return lines
}

// grouped are texts, each with the names that it is of.
type grouped struct {
	texts []string
	names map[string][]string
}

func (g *grouped) add(text, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if _, ok := g.names[text]; !ok {
		g.texts = append(g.texts, text)
	}
	g.names[text] = append(g.names[text], name)
}

func (g *grouped) lines() []string {
	var out []string
	for _, text := range g.texts {
		names := strings.Join(g.names[text], " ")
		out = append(out, strings.TrimSpace(strings.ReplaceAll(text+" "+names, "by  ", "")))
	}
	return out
}

// sizes tells of each set that has or wants machines what it wants, and what the
// machines do that it has.
func (p *sequenceRun) sizes(f deploymenttest.Frame) string {
	var out []string
	for _, s := range f.Sizes {
		if s.Spec == 0 && s.Counts.Machines == 0 {
			continue
		}
		var has []string
		starting := s.Counts.Present - s.Counts.Available - s.Counts.Failed - s.Counts.Updating
		for _, n := range []struct {
			n    int
			what string
		}{{s.Counts.Available, "up"}, {s.Counts.Updating, "updating"}, {starting, "not up"}, {s.Counts.Failed, "failed"}, {s.Counts.Leaving, "leaving"}} {
			if n.n > 0 {
				has = append(has, fmt.Sprintf("%d %s", n.n, n.what))
			}
		}
		out = append(out, fmt.Sprintf("%s %d (%s)", s.Class, s.Spec, strings.Join(has, ", ")))
	}
	return strings.Join(out, "  ")
}

// shortName calls sets by their class and machines by class and number, as names are
// hashes.
func (p *sequenceRun) shortName(text string) string {
	for _, s := range p.Sets() {
		class := s.Spec.Template.Spec.Class.Name
		text = strings.ReplaceAll(text, "node-"+s.Name+"-000", class+".")
		text = strings.ReplaceAll(text, s.Name+"-000", class+".")
		text = strings.ReplaceAll(text, s.Name, class)
	}
	return text
}

// waits tells what is waited for, if that has not been told.
func (p *sequenceRun) waits() {
	d := p.Decision()
	d.Actions = nil
	if text := p.shortName(strings.Join(decisionWords(d), "; ")); len(d.Holds) > 0 && text != p.last {
		p.last = text
		p.linef("%s  %s", p.since(p.Now()), text)
	}
}

// end tells how it ends.
func (p *sequenceRun) end() {
	p.waits()
	d := p.Deployment()
	done := deployment.Complete(d, d.Status)
	require.Equal(p.t, !p.s.stops, done, "the end:\n%s", p.text.String())
	c := deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentProgressing)
	p.linef("at rest after %s: %d of %d machines are up to date, %d available; %s\n", strings.TrimSpace(p.since(p.Now())),
		d.Status.UpdatedReplicas, d.Spec.Replicas, d.Status.AvailableReplicas, c.Reason)
}

func sequenceGolden(t *testing.T, name string, sequences ...sequence) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var all []string
		for _, s := range sequences {
			all = append(all, s.run(t))
		}
		got := strings.Join(all, "")
		golden(t, filepath.Join("testdata", "sequences", name+".txt"), got)
	})
}

// golden compares a text with a file, which -update writes.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// event is a change of the deployment by its user.
func event(text string, change func(d *v1alpha1.MachineDeployment)) sequenceEvent {
	return sequenceEvent{text: text, do: func(p *sequenceRun) { p.edit(change) }}
}

func replicas(n int32) sequenceEvent {
	return event(fmt.Sprintf("%d machines are wanted", n), func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = n })
}

func template(class string) sequenceEvent {
	return event("machines of class "+class+" are wanted", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = class })
}

func rollback() sequenceEvent {
	return event("it is rolled back", func(d *v1alpha1.MachineDeployment) { d.Spec.RollbackTo = &v1alpha1.RollbackConfig{} })
}

func pause() sequenceEvent {
	return event("it is paused", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
}

func resume() sequenceEvent {
	return event("it goes on", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = false })
}

// removal has an autoscaler take one machine of each class.
func removal() sequenceEvent {
	return sequenceEvent{text: "the autoscaler wants the youngest machine of each class gone", do: func(p *sequenceRun) {
		youngest := map[string]string{}
		for _, m := range p.Machines() {
			if m.DeletionTimestamp == nil {
				youngest[m.Spec.Class.Name] = m.Name
			}
		}
		at := "~" + p.Now().UTC().Format(time.RFC3339)
		names := slices.Sorted(maps.Values(youngest))
		p.edit(func(d *v1alpha1.MachineDeployment) {
			d.Spec.Replicas -= int32(len(names))
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, namesKey, strings.Join(names, at+",")+at)
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, scaledKey, at[1:])
		})
	}}
}

// fails has the oldest old machine fail.
func fails() sequenceEvent {
	return sequenceEvent{text: "an old machine is not healthy", do: func(p *sequenceRun) {
		require.NoError(p.t, p.SetPhase(p.Machines()[0].Name, v1alpha1.MachineUnknown))
	}}
}

func (e sequenceEvent) at(after time.Duration) sequenceEvent {
	e.after = after
	return e
}

// newNeverJoin is a model in which machines of the new class never come up.
func newNeverJoin() deploymenttest.Model {
	return deploymenttest.Model{Join: func(m *v1alpha1.Machine) (time.Duration, bool) {
		return 2 * time.Minute, m.Spec.Class.Name != "c2"
	}}
}

func TestSequences(t *testing.T) {
	for _, n := range []int{1, 3, 5, 10} {
		var rolls, updates []sequence
		for _, bounds := range []string{"+1 -0", "+0 -1", "+25% -0", "+2 -1"} {
			rolls = append(rolls, sequence{text: fmt.Sprintf("rolling %d %s", n, bounds)})
			updates = append(updates, sequence{text: fmt.Sprintf("inplace %d %s", n, bounds)})
		}
		sequenceGolden(t, fmt.Sprintf("rolling-%d", n), rolls...)
		sequenceGolden(t, fmt.Sprintf("in-place-%d", n), updates...)
	}
	recreations := []sequence{{text: "recreate 1"}, {text: "recreate 3"}, {text: "recreate 10"}}
	sequenceGolden(t, "recreate", recreations...)
	sequenceGolden(t, "in-place-manual", sequence{text: "manual 1 +0 -1"}, sequence{text: "manual 3 +1 -1"})

	one, less := sequence{text: "rolling 5 +1 -0"}, sequence{text: "rolling 5 +0 -2"}
	all := []sequence{one, less, {text: "recreate 5"}, {text: "inplace 5 +1 -1"}, {text: "manual 3 +0 -1"}}
	with := func(events ...sequenceEvent) []sequence {
		var out []sequence
		for _, s := range all {
			s.events = events
			out = append(out, s)
		}
		return out
	}
	const soon = 3 * time.Minute
	sequenceGolden(t, "scaled-out", with(replicas(8).at(soon))...)
	sequenceGolden(t, "scaled-in", with(replicas(2).at(soon))...)
	sequenceGolden(t, "scaled-to-zero-and-back", with(replicas(0).at(soon), replicas(3).at(20*time.Minute))...)
	sequenceGolden(t, "second-template", with(template("c3").at(soon))...)
	sequenceGolden(t, "template-taken-back", with(template("c1").at(soon))...)
	sequenceGolden(t, "rolled-back", with(rollback().at(soon))...)
	sequenceGolden(t, "paused", with(pause().at(soon), resume().at(30*time.Minute))...)
	sequenceGolden(t, "scaled-while-paused", with(pause().at(soon), replicas(7).at(10*time.Minute), resume().at(30*time.Minute))...)
	sequenceGolden(t, "named-removal", with(removal().at(soon))...)
	sequenceGolden(t, "an-old-machine-is-broken", with(fails().at(0))...)

	bad := one
	bad.model, bad.events = newNeverJoin(), []sequenceEvent{rollback().at(30 * time.Minute)}
	badLess := less
	badLess.model, badLess.events = newNeverJoin(), bad.events
	sequenceGolden(t, "new-machines-never-come-up", bad, badLess)

	sequenceGolden(t, "ready-for-a-while", sequence{text: "rolling 5 +1 -0 ready=90"})

	var capacity []sequence
	for _, free := range []bool{false, true} {
		s := sequence{text: "rolling 3 +1 -0", places: 3, stops: !free}
		s.model.Policy.FreeCapacity = free
		capacity = append(capacity, s)
	}
	sequenceGolden(t, "no-capacity", capacity...)
}

// TestScale_AtAnyStepOfARollout_ChangesOnlyTheTotal asserts that a change of the replicas in a
// rollout changes nothing else. No old set grows, unless it is the only one with a size. The new
// set does not shrink while more machines are wanted, and no machine is created in vain.
func TestScale_AtAnyStepOfARollout_ChangesOnlyTheTotal(t *testing.T) {
	for _, bounds := range []string{"+1 -0", "+0 -1", "+2 -1", "+50% -50%"} {
		for _, to := range []int32{0, 1, 3, 4, 6, 9} {
			for step := range 40 {
				if !scaleAtStep(t, sequence{text: "rolling 5 " + bounds}, step, to) {
					break
				}
			}
		}
	}
}

// scaleAtStep returns false if the rollout has fewer steps.
func scaleAtStep(t *testing.T, s sequence, step int, to int32) bool {
	r := newRollout(t, s.deployment(), s.model)
	r.class("c2")
	for range step {
		if _, ok := r.Step(); !ok {
			return false
		}
	}
	sizes := func() (old, fresh int32) { return r.set("c1").Spec.Replicas, r.set("c2").Spec.Replicas }
	old, fresh := sizes()
	most := old + fresh
	r.scale(to)
	most = max(most, int32(boundsOf(r.Deployment()).Most()))
	name := fmt.Sprintf("%v at step %d to %d", s.title(), step, to)
	for range 200 {
		_, ok := r.Step()
		o, n := sizes()
		if fresh > 0 {
			require.LessOrEqual(t, o, old, "%s: an old set grows", name)
		}
		require.LessOrEqual(t, o+n, most, "%s: too many", name)
		if to >= 5 {
			require.GreaterOrEqual(t, n, fresh, "%s: the new set shrinks", name)
		}
		if old, fresh = o, n; !ok {
			break
		}
	}
	require.True(t, deployment.Complete(r.Deployment(), r.Deployment().Status), "%s: %+v", name, r.Deployment().Status)
	require.LessOrEqual(t, r.made["c2"], int(max(to, 5)), "%s: machines were made in vain", name)
	return true
}
