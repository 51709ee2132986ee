// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// film takes a step down. Steps at one time become one frame, and those at which nothing changed
// that is shown become none.
func (t *theatre) film(step deploymenttest.Frame) {
	after := step.At.Sub(t.start)
	f := Frame{After: offset(after)}
	if last := len(t.frames) - 1; last >= 0 {
		f.Reason, f.Holds = t.frames[last].Reason, t.frames[last].Holds
		if t.frames[last].After == f.After && !t.frames[last].Before {
			f, t.frames = t.frames[last], t.frames[:last]
		} else {
			t.actions = nil
		}
	}
	f.Events = append(f.Events, t.happened...)
	t.happened = nil
	if step.Decided || len(t.frames) == 0 {
		f.Reason, f.Holds = string(step.Decision.Reason), t.holds(step.Decision)
	}
	if step.Decided {
		t.actions = append(t.actions, step.Decision.Actions...)
		f.Done = done(t.actions)
	}
	f.Happened = append(f.Happened, step.Events...)
	f.Victims = append(f.Victims, victims(step.Sets)...)
	t.measure(&f, step.Sizes)
	if last := len(t.frames) - 1; last < 0 || !f.same(t.frames[last]) {
		t.frames = append(t.frames, f)
	}
}

// same says whether a frame shows nothing new.
func (f Frame) same(before Frame) bool {
	if len(f.Events)+len(f.Done)+len(f.Victims)+len(f.Happened) > 0 {
		return false
	}
	before.After, before.Before, before.Events, before.Done, before.Victims, before.Happened = f.After, f.Before, nil, nil, nil, nil
	f.Events, f.Done, f.Victims, f.Happened = nil, nil, nil, nil
	return reflect.DeepEqual(f, before)
}

// measure takes down the sets and the bounds.
func (t *theatre) measure(f *Frame, sizes []deploymenttest.Size) {
	f.Sets, f.Available, f.Total = []Set{}, 0, 0
	for _, s := range sizes {
		f.Sets = append(f.Sets, Set{Name: s.Name, Class: s.Class, New: s.New, Wanted: int(s.Spec), Machines: machinesIn(s)})
		f.Available += s.Counts.Available
		f.Total += max(s.Counts.Machines, int(s.Spec)+s.Counts.Leaving)
	}
	d := t.world.Deployment()
	f.Wanted, f.Floor, f.Cap = int(d.Spec.Replicas), floor(d), ceiling(d)
}

// machinesIn sorts the machines of a set by what they are.
func machinesIn(s deploymenttest.Size) Machines {
	m := Machines{Available: s.Counts.Available}
	for phase, n := range s.Phases {
		switch traits := machine.TraitsOf(phase); {
		case traits.Available:
			m.Settling += n
		case traits.Updating:
			m.Updating += n
		case phase == v1alpha1.MachineTerminating:
			m.Leaving += n
		case traits.Trouble:
			m.Failed += n
		default:
			m.Joining += n
		}
	}
	m.Settling -= m.Available // those that run for long enough
	return m
}

// floor is how many machines have to be available.
func floor(d *v1alpha1.MachineDeployment) int {
	b, _ := deployment.BoundsOf(d) // it has been validated
	return int(b.Least())
}

// ceiling is how many machines may exist.
func ceiling(d *v1alpha1.MachineDeployment) int {
	if d.Spec.Replicas == 0 {
		return 0
	}
	b, _ := deployment.BoundsOf(d) // it has been validated
	return int(b.Most())
}

// holds are those of a decision, with times since the change.
func (t *theatre) holds(d deployment.Decision) []Hold {
	var out []Hold
	for _, h := range d.Holds {
		hold := Hold{Subject: h.Subject, Reason: string(h.Reason), Message: h.Message}
		if !h.Until.IsZero() {
			hold.Until = offset(h.Until.Sub(t.start))
		}
		out = append(out, hold)
	}
	return out
}

// done is what actions do; equal changes of several Nodes or machines are one line.
func done(actions []deployment.Action) []string {
	var lines []string
	type kind struct{ what, changes string }
	first, many := map[kind]int{}, map[kind]int{}
	for _, a := range actions {
		var k kind
		switch a := a.(type) {
		case deployment.WriteNode:
			k = kind{"mark %d nodes: ", strings.Join(a.Changes, "; ")}
		case deployment.WriteMachine:
			k = kind{"update %d machines: ", strings.Join(a.Changes, "; ")}
		default:
			lines = append(lines, a.String())
			continue
		}
		if many[k]++; many[k] == 1 {
			first[k] = len(lines)
			lines = append(lines, a.String())
		} else {
			lines[first[k]] = fmt.Sprintf(k.what, many[k]) + k.changes
		}
	}
	return lines
}

// victims are the machines that sets delete.
func victims(sets []deploymenttest.SetDecision) []Victim {
	var out []Victim
	for _, s := range sets {
		for _, a := range s.Decision.Actions {
			if del, ok := a.(machineset.Delete); ok {
				out = append(out, Victim{Machine: del.Name, Set: s.Name, By: cmp.Or(del.By, string(del.Reason))})
			}
		}
	}
	return out
}
