// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machineset"
)

// A Frame is one step of a world: what happened to machines, then what the
// controllers of the sets did about it, then what that of the deployment did.
type Frame struct {
	// At is when.
	At time.Time
	// Events are what happened to machines since the last frame, in words.
	Events []string
	// Sets are the decisions about sets, in their order, but for those that do
	// nothing.
	Sets []SetDecision
	// Decided says that the deployment was decided about; Decision is how. It may
	// do nothing.
	Decided  bool
	Decision deployment.Decision
	// Sizes are the sets as they are now, in the order in which they were created.
	Sizes []Size
}

// A SetDecision is a decision about one set.
type SetDecision struct {
	// Name of the set.
	Name string
	// Decision about it.
	Decision machineset.Decision
}

// Step moves the world on to the next instant at which something changes, lets it
// happen, and has the controllers decide: those of the sets as often as they have
// something to do, that of the deployment once. It returns false, and a frame
// without meaning, when the world has come to rest: nothing is about to happen to
// a machine, and the controllers change nothing for two hours. The
// time is then that of the last change. Whatever is changed from outside wakes the
// world again.
func (w *World) Step() (Frame, bool) {
	f, end := w.step(w.now.Add(forever))
	return f, end == moved
}

// Run steps until the world has come to rest, and says whether it has before the
// limit, which is on the time that passes in it. It returns the last frame.
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

// quiet is for how long the controllers are asked again although nothing has changed,
// before the world counts as having come to rest.
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

// rewind goes back to a time since which nothing has changed.
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

// round has all controllers act that are due.
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

// passes has the controllers of the sets decide that are due, and says whether
// there were any.
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

// nextDue returns when something is due next, zero if nothing is.
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
