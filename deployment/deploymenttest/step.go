// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machineset"
)

// A Frame is one step of a world: changes of machines, then the decisions about the sets, then the
// decision about the deployment.
type Frame struct {
	// At is the time.
	At time.Time
	// Events describe the changes of machines since the last frame.
	Events []string
	// Sets are the decisions about sets with an action, in the order of the sets.
	Sets []SetDecision
	// Decided means that there is a decision about the deployment. It may have no action.
	Decided  bool
	Decision deployment.Decision
	// Sizes are the current sizes of the sets in the order of their creation.
	Sizes []Size
}

// A SetDecision is a decision about one set.
type SetDecision struct {
	// Name of the set.
	Name string
	// Decision about it.
	Decision machineset.Decision
}

// Step advances the time to the next change, applies it, and runs the controllers: those of the
// sets until they have nothing to do, that of the deployment once. It returns false, without a
// frame, when the world is at rest: no machine is about to change, and the controllers change
// nothing for two hours. The time is then the time of the last change. A change from outside ends
// the rest.
func (w *World) Step() (Frame, bool) {
	f, end := w.step(w.now.Add(forever))
	return f, end == moved
}

// Run steps until the world is at rest, or until the limit of time in the world, and reports
// whether it is at rest. It returns the last frame.
func (w *World) Run(limit time.Duration) (last Frame, rest bool) {
	until := w.now.Add(max(0, limit))
	for {
		switch f, end := w.step(until); end {
		case moved:
			last = f
		case atRest:
			return last, true
		default:
			return last, false
		}
	}
}

// How a step ends.
const (
	moved   = iota
	atRest  // nothing changes any more
	atLimit // nothing changes until the limit, which it is now
)

// quiet is the time without a change after which the world is at rest. The controllers run during
// that time.
const quiet = 2 * time.Hour

const forever = 200 * 365 * 24 * time.Hour

func (w *World) step(until time.Time) (Frame, int) {
	began := w.now
	for {
		before := w.changes
		w.round()
		f := w.frame
		w.frame = Frame{}
		if w.changes != before || len(f.Events) > 0 {
			f.At, f.Sizes = w.now, w.Sizes()
			return f, moved
		}
		switch next := w.nextDue(); {
		case next.IsZero(), next.After(began.Add(quiet)) && !w.events.pending():
			w.rewind(began)
			return Frame{}, atRest
		case next.After(until):
			w.now = until
			return Frame{}, atLimit
		case next.After(w.now):
			w.now = next
		}
	}
}

// rewind sets the time back to the last change.
func (w *World) rewind(to time.Time) {
	back := to.Sub(w.now)
	w.now = to
	for i := range w.events.list {
		w.events.list[i].at = w.events.list[i].at.Add(back)
	}
	loops := []*loop{&w.planner.loop}
	for _, s := range w.setLoops.list() {
		if s != nil {
			loops = append(loops, &s.loop)
		}
	}
	for _, l := range loops {
		if !l.due.IsZero() {
			l.due = l.due.Add(back)
		}
	}
}

// round runs all controllers that are due.
func (w *World) round() {
	trouble := w.model.Idle != nil || w.model.Lag != nil
	for {
		happened := w.happen()
		worked := w.passes()
		if trouble || !happened && !worked {
			break
		}
	}
	if w.planner.isDue(w.now) {
		w.plan()
	}
}

// passes runs the controllers of the sets that are due, and reports whether there were any.
func (w *World) passes() bool {
	worked := false
	for _, s := range slices.Clone(w.setLoops.list()) {
		if s == nil || !s.isDue(w.now) {
			continue
		}
		if w.model.Lag != nil && s.follower == nil {
			s.follower = w.follow()
		}
		w.pass(s)
		worked = true
	}
	return worked
}

// nextDue returns the time at which something is due next, or zero.
func (w *World) nextDue() time.Time {
	l := loop{}
	l.by(w.planner.due)
	for _, s := range w.setLoops.list() {
		if s != nil {
			l.by(s.due)
		}
	}
	if len(w.events.list) > 0 {
		l.by(w.events.list[0].at)
	}
	return l.due
}
