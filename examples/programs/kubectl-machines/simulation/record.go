// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// record adds a step to the frames. Steps at the same time become one frame. A step that changes
// nothing that a frame shows is left out.
func (s *simulation) record(step deploymenttest.Frame) {
	f := Frame{After: offset(step.At.Sub(s.start))}
	if last := len(s.frames) - 1; last >= 0 {
		if s.frames[last].After == f.After && !s.frames[last].Before {
			f, s.frames = s.frames[last], s.frames[:last]
		} else {
			d := s.frames[last].Decision // of which these parts still hold
			f.Decision = deployment.Decision{Reason: d.Reason, Message: d.Message, Holds: d.Holds}
		}
	}
	f.Events = append(f.Events, s.events...)
	s.events = nil
	if step.Decided || len(s.frames) == 0 {
		actions := f.Decision.Actions
		f.Decision = step.Decision
		f.Decision.Actions = slices.Concat(actions, step.Decision.Actions)
	}
	f.MachineEvents = append(f.MachineEvents, step.Events...)
	f.Deletions = append(f.Deletions, deletionsOf(step.Sets)...)
	s.measure(&f, step.Sizes)
	if last := len(s.frames) - 1; last < 0 || !f.same(s.frames[last]) {
		s.frames = append(s.frames, f)
	}
}

// same reports whether a frame shows nothing but the one before.
func (f Frame) same(before Frame) bool {
	if len(f.Events)+len(f.Decision.Actions)+len(f.Deletions)+len(f.MachineEvents) > 0 {
		return false
	}
	shown := func(f Frame) Frame {
		f.After, f.Before, f.Events, f.MachineEvents, f.Deletions = offset(0), false, nil, nil, nil
		f.Decision = deployment.Decision{Reason: f.Decision.Reason, Holds: f.Decision.Holds}
		return f
	}
	return reflect.DeepEqual(shown(f), shown(before))
}

// measure sets the sizes and the bounds of a frame.
func (s *simulation) measure(f *Frame, sizes []deploymenttest.Size) {
	f.Sets, f.Available, f.Total = []Set{}, 0, 0
	for _, size := range sizes {
		f.Sets = append(f.Sets, Set{Name: size.Name, Class: size.Class, New: size.New, Replicas: int(size.Spec), Machines: machinesIn(size)})
		f.Available += size.Counts.Available
		f.Total += max(size.Counts.Machines, int(size.Spec)+size.Counts.Leaving)
	}
	f.Replacing = 0
	for name := range s.provider.failed {
		if m := s.world.Machine(name); m != nil && m.DeletionTimestamp != nil {
			f.Replacing++
		}
	}
	d := s.world.Deployment()
	b, _ := deployment.BoundsOf(d) // it has been validated
	f.Replicas, f.Minimum, f.Maximum = int(d.Spec.Replicas), int(b.Least()), int(b.Most())
	if d.Spec.Replicas == 0 {
		f.Maximum = 0
	}
}

// stateOf are the states of machines by phase. Others are pending.
var stateOf = map[v1alpha1.MachinePhase]string{
	v1alpha1.MachineRunning: ready, v1alpha1.MachineAvailable: ready, v1alpha1.MachineTerminating: terminating,
	v1alpha1.MachineInPlaceUpdating: updating, v1alpha1.MachineInPlaceUpdateSuccessful: updating,
	v1alpha1.MachineFailed: failed, v1alpha1.MachineUnknown: failed, v1alpha1.MachineCrashLoopBackOff: failed, v1alpha1.MachineInPlaceUpdateFailed: failed,
}

// machinesIn returns the numbers of machines of a set by state.
func machinesIn(s deploymenttest.Size) Machines {
	m := Machines{available: s.Counts.Available}
	for phase, n := range s.Phases {
		m[cmp.Or(stateOf[phase], pending)] += n
	}
	m[ready] -= m[available] // those that have been ready for minReadySeconds
	maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
	return m
}

// deletionsOf returns the machines that sets delete.
func deletionsOf(sets []deploymenttest.SetDecision) []Deletion {
	var out []Deletion
	for _, s := range sets {
		for _, a := range s.Decision.Actions {
			if del, ok := a.(machinist.Delete); ok {
				by := strings.TrimPrefix(cmp.Or(del.Message, string(del.Reason)), "chosen by ")
				out = append(out, Deletion{Machine: del.Object.GetName(), Set: s.Name, By: by})
			}
		}
	}
	return out
}
