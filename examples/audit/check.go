// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// DefaultTolerance is how far the records may be apart, and a cache behind.
const DefaultTolerance = 2 * time.Second

// Options say what is held against the controllers. The zero Options take it that
// everything that was deleted was deleted by them, and that machines and Nodes
// may fail by themselves.
type Options struct {
	// Tolerance is how much later than it happened a change may be seen, and how
	// long a controller may act on a bound that was changed. Zero or less means
	// DefaultTolerance.
	Tolerance time.Duration
	// Steady says that nothing fails by itself: a machine that stops being
	// available counts against the floor even if it was not deleted.
	Steady bool
	// Excused reports whether another client deleted a machine or made it unavailable.
	// Nil excuses none.
	Excused func(*v1alpha1.Machine) bool
	// Lost is how many machines other clients remove from a deployment at most, by
	// changing their labels. Machines that the deployment has replaced count as its own.
	Lost int
	// ByHand is how many machines a user adds to a set at most. Its set and its
	// deployment may be frozen then.
	ByHand int
	// Foreign says of a VM that no controller made it. Nil means that they made
	// all.
	Foreign func(drivertest.VM) bool
}

// Figures are what the records show.
type Figures struct {
	// Changes of machine objects that were seen, lists left out.
	Changes int
	// Machines that were seen.
	Machines int
	// MostAlive is how many machines at a time were not being deleted, at most.
	MostAlive int
	// FewestAvailable is how many machines of a deployment that had been complete
	// were available, at least; -1 means that none had. A machine that
	// [Options.Excused] names counts as available until it is deleted.
	FewestAvailable int
	// MostVMs is how many VMs at a time were not being deleted, at most.
	MostVMs int
	// Gaps is how often changes may have been missed during the recording.
	Gaps int
	// CutShort means that the last stretch of the recording is missing.
	CutShort bool
	// Unproven is what could not be judged for want of what was missed, one
	// sentence each: of a VM, of a gap in which steps were taken that were judged
	// only all together or not at all, and of a recording whose end is missing.
	Unproven []string
}

// Complete says whether nothing was missed during the recording, and every bound
// was judged at every step. Without that, no [Violation] means little.
func (f Figures) Complete() bool { return f.Gaps == 0 && len(f.Unproven) == 0 }

// String renders the figures on one line. Its form may change.
func (f Figures) String() string {
	text := fmt.Sprintf("%d machines, at most %d and %d VMs at a time, %d changes seen", f.Machines, f.MostAlive, f.MostVMs, f.Changes)
	if f.FewestAvailable >= 0 {
		text += fmt.Sprintf(", never fewer than %d available", f.FewestAvailable)
	}
	if f.Gaps > 0 {
		text += fmt.Sprintf(", %d gaps", f.Gaps)
	}
	if len(f.Unproven) > 0 {
		text += "; not judged: " + strings.Join(f.Unproven, "; ")
	}
	return text
}

// Check goes through what happened to the objects and in the cloud, and returns
// what it shows and every [Violation], joined; nil if no bound was broken. What the
// cloud holds in the end is a violation as well; pass the zero Snapshot if it may
// hold something.
//
// The history must not have been taken before the log was stopped. Nothing is
// modified.
func Check(log Log, cloud drivertest.History, left drivertest.Snapshot, o Options) (Figures, error) {
	if o.Tolerance <= 0 {
		o.Tolerance = DefaultTolerance
	}
	r := &replay{
		log: log, options: o, objects: newObjects(), figures: Figures{FewestAvailable: -1},
		told: map[string]bool{}, skipped: make([]bool, len(log.Gaps)),
	}
	r.replayObjects()
	r.replayCloud(cloud, left.Time)
	if !left.Empty() {
		r.broken(NothingLeft, "the cloud still holds:\n%s", left)
	}
	for i, g := range log.Gaps {
		if g.inner() {
			r.figures.Gaps++
		}
		switch {
		case g.cutsShort():
			r.figures.CutShort = true
			r.unproven("what happened last, in the gap of %s", g)
		case r.skipped[i] && !g.afterwards():
			r.unproven("every step by itself in the gap of %s", g)
		}
	}
	return r.figures, errors.Join(r.errs...)
}

// replay goes through a log and a history.
type replay struct {
	log     Log
	options Options
	objects objects
	figures Figures
	errs    []error
	told    map[string]bool
	pending []effect
	skipped []bool // by gap: something was not judged when it happened
}

// broken records a violation, once.
func (r *replay) broken(b Bound, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !r.told[text] {
		r.told[text] = true
		r.errs = append(r.errs, Violation{Bound: b, Text: text})
	}
}

// unproven notes what cannot be judged.
func (r *replay) unproven(format string, args ...any) {
	r.figures.Unproven = append(r.figures.Unproven, fmt.Sprintf(format, args...))
}

// skew is by how much the times of the log may be late.
func (r *replay) skew() time.Duration {
	if r.log.Exact {
		return 0
	}
	return r.options.Tolerance
}

// earliest returns when a change may have been written at the earliest.
func (r *replay) earliest(c Change) time.Time { return c.earliest(r.log.Exact, r.options.Tolerance) }

// replayObjects goes through the changes in the order of their versions. What
// lists bring comes at once, with the write that made their version.
func (r *replay) replayObjects() {
	changes := slices.DeleteFunc(slices.Clone(r.log.Changes), func(c Change) bool { return resourceOf(c.Object) == "" })
	slices.SortStableFunc(changes, inOrder)
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Listed && changes[n].Version == changes[0].Version {
			n++
		}
		for _, c := range changes[:n] {
			if !c.Listed {
				r.figures.Changes++
			}
			r.pending = append(r.pending, r.apply(c)...)
		}
		if !r.hidden(changes[n-1].Version) {
			r.measure()
			r.judge()
			r.pending = nil
		}
		changes = changes[n:]
	}
	r.figures.Machines = len(r.objects.lives)
}

// hidden says whether something may have been written before a version that is
// known only later, or never, and notes the gaps for which what is pending is
// therefore not judged now.
func (r *replay) hidden(version uint64) bool {
	hidden := false
	for i, g := range r.log.Gaps {
		if g.hides(version) {
			hidden, r.skipped[i] = true, r.skipped[i] || len(r.pending) > 0
		}
	}
	return hidden
}

// inOrder compares changes: a list comes behind the write that made its version.
func inOrder(a, b Change) int {
	order := cmp.Compare(a.Version, b.Version)
	if order == 0 && a.Listed != b.Listed {
		if b.Listed {
			return -1
		}
		return 1
	}
	return order
}
