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

// DefaultTolerance is the default of [Options].Tolerance.
const DefaultTolerance = 2 * time.Second

// Options are the circumstances of a run. The zero Options mean that the controllers made every
// deletion, and that machines and Nodes may fail by themselves.
type Options struct {
	// Tolerance is the maximum delay of a recorded change, and how long a controller may
	// act on an old bound, or on the machines before one failed. Zero or less means DefaultTolerance.
	Tolerance time.Duration
	// Steady means that no machine fails by itself. A machine that becomes unavailable
	// then violates Availability even if it was not deleted.
	Steady bool
	// Excused reports whether another client deleted a machine or made it unavailable.
	// Nil excuses none.
	Excused func(*v1alpha1.Machine) bool
	// Lost is the maximum number of machines that other clients remove from a deployment
	// by relabeling. Machines that the deployment has replaced count as its own.
	Lost int
	// ByHand is the maximum number of machines that a user adds to a set. The set and its
	// deployment may then be frozen.
	ByHand int
	// Foreign reports whether another program created a VM. Nil means that the
	// controllers created all.
	Foreign func(drivertest.VM) bool
}

// Figures are the results of [Check] besides violations.
type Figures struct {
	// Changes is the number of watched changes of machine objects.
	Changes int
	// Machines is the number of machines.
	Machines int
	// MostAlive is the maximum number of machines at a time that were not being deleted.
	MostAlive int
	// FewestAvailable is the minimum number of available machines of a deployment after
	// it was complete once. -1 means that none was. A machine for which [Options].Excused
	// returns true counts as available until it is deleted.
	FewestAvailable int
	// MostVMs is the maximum number of VMs at a time that were not being deleted.
	MostVMs int
	// Gaps is the number of gaps during the recording.
	Gaps int
	// CutShort means that the end of the recording is missing.
	CutShort bool
	// Unproven contains one text for each thing that could not be judged: a VM, the
	// changes in a gap, or the end of the recording.
	Unproven []string
}

// Complete reports whether nothing was missed during the recording and every bound was judged at
// every step. Otherwise a result without [Violation] proves little.
func (f Figures) Complete() bool { return f.Gaps == 0 && len(f.Unproven) == 0 }

// String returns the figures in one line. The format may change.
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

// Check replays the changes of the objects and the history of the cloud. It returns figures and
// every [Violation], joined, or nil. VMs in left are violations. Pass the zero Snapshot if the
// cloud need not be empty.
//
// The history must be taken after the end of the log. Check modifies nothing.
func Check(log Log, cloud drivertest.History, left drivertest.Snapshot, o Options) (Figures, error) {
	if o.Tolerance <= 0 {
		o.Tolerance = DefaultTolerance
	}
	r := &replay{
		log: log, options: o, objects: newObjects(), figures: Figures{FewestAvailable: -1},
		reported: map[string]bool{}, skipped: make([]bool, len(log.Gaps)),
	}
	r.replayObjects()
	r.replayCloud(cloud, left.Time)
	if !left.Empty() {
		r.violate(NothingLeft, "the cloud is not empty:\n%s", left)
	}
	for i, g := range log.Gaps {
		if g.inner() {
			r.figures.Gaps++
		}
		switch {
		case g.cutsShort():
			r.figures.CutShort = true
			r.unproven("the last changes, because of the gap of %s", g)
		case r.skipped[i] && !g.afterwards():
			r.unproven("each change in the gap of %s", g)
		}
	}
	return r.figures, errors.Join(r.errs...)
}

// replay is the replay of a log and a history.
type replay struct {
	log      Log
	options  Options
	objects  objects
	figures  Figures
	errs     []error
	reported map[string]bool
	pending  []effect
	skipped  []bool // by gap: a change could not be judged in time
}

// violate records a violation once.
func (r *replay) violate(b Bound, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !r.reported[text] {
		r.reported[text] = true
		r.errs = append(r.errs, Violation{Bound: b, Text: text})
	}
}

// unproven records what cannot be judged.
func (r *replay) unproven(format string, args ...any) {
	r.figures.Unproven = append(r.figures.Unproven, fmt.Sprintf(format, args...))
}

// skew returns the maximum delay of the times of the log.
func (r *replay) skew() time.Duration {
	if r.log.Exact {
		return 0
	}
	return r.options.Tolerance
}

// earliest returns the earliest possible time of the write of a change.
func (r *replay) earliest(c Change) time.Time { return c.earliest(r.log.Exact, r.options.Tolerance) }

// replayObjects replays the changes in the order of their versions. Listed changes come after the
// write with the version of the list.
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
	r.figures.Machines = len(r.objects.histories)
}

// hidden reports whether a write before a version may be received later or never. It also records
// the gaps because of which pending effects are not judged now.
func (r *replay) hidden(version uint64) bool {
	hidden := false
	for i, g := range r.log.Gaps {
		if g.hides(version) {
			hidden, r.skipped[i] = true, r.skipped[i] || len(r.pending) > 0
		}
	}
	return hidden
}

// inOrder compares changes by version. A list comes after the write with its version.
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
