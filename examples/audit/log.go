// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Change is one change of a machine object.
type Change struct {
	// Time is when the change was written if the log is exact, and otherwise when
	// it was seen, which is later.
	Time time.Time
	// Since is how far back the change may have been written if it was held up on
	// its way: when its stream was last heard. Zero means that nothing held it up.
	Since time.Time
	// Version is the resource version that the write made. Of a listed change it
	// is that of the list.
	Version uint64
	// Object as it was after the change, or when it was last seen if it is gone: a
	// *v1alpha1.Machine, MachineSet or MachineDeployment. It is not to be changed.
	Object runtime.Object
	// Gone means that the object is no more.
	Gone bool
	// Listed means that the change was not seen, but is the difference between
	// what was known and a list: others may have gone before it.
	Listed bool
}

// String renders the change on one line. Its form may change.
func (c Change) String() string {
	what, name := "nothing", ""
	switch o := c.Object.(type) {
	case *v1alpha1.Machine:
		what, name = "machine", nameOf(o)
	case *v1alpha1.MachineSet:
		what, name = "machine set", nameOf(o)
	case *v1alpha1.MachineDeployment:
		what, name = "machine deployment", nameOf(o)
	}
	how := "is"
	if c.Gone {
		how = "is gone"
	}
	if c.Listed {
		how += ", by a list"
	}
	return fmt.Sprintf("%s %s %s (%s, version %d)", what, name, how, c.Time.Format(time.StampMilli), c.Version)
}

// earliest returns when the change may have been written at the earliest.
func (c Change) earliest(exact bool, tolerance time.Duration) time.Time {
	switch {
	case exact:
		return c.Time
	case !c.Since.IsZero():
		return c.Since.Add(-tolerance)
	case c.Listed:
		return time.Time{}
	default:
		return c.Time.Add(-tolerance)
	}
}

// A Gap is a stretch in which changes of a kind may have been missed.
type Gap struct {
	// Resource is the plural name of the kind.
	Resource string
	// After is the version up to which nothing was missed, Until the version of
	// the list that ended the gap; zero if no list did.
	After, Until uint64
	// From is when the stream was last heard before the gap, and zero before the
	// recording. To is when the list had come, and zero after the recording.
	From, To time.Time
	// CaughtUp says of a gap after the recording that what had happened when the
	// end was asked for had arrived: what may be missing happened later. Where it is
	// false the last stretch of the recording may be missing. It means nothing for
	// other gaps.
	CaughtUp bool
}

// inner says whether the gap lies within the recording.
func (g Gap) inner() bool { return !g.From.IsZero() && !g.To.IsZero() }

// hides says whether a write before a version is known only later than that for the
// gap, or never.
func (g Gap) hides(version uint64) bool {
	return g.After < version && (version < g.Until || g.To.IsZero())
}

// cutsShort says whether the gap may have swallowed the last stretch of the recording.
func (g Gap) cutsShort() bool { return g.To.IsZero() && !g.CaughtUp }

// afterwards says whether all that the gap may have swallowed happened after the end
// of the recording was asked for.
func (g Gap) afterwards() bool { return g.To.IsZero() && g.CaughtUp }

// String renders the gap on one line. Its form may change.
func (g Gap) String() string {
	from, to := "the beginning", "the end"
	if !g.From.IsZero() {
		from = g.From.Format(time.StampMilli)
	}
	if !g.To.IsZero() {
		to = g.To.Format(time.StampMilli)
	}
	return fmt.Sprintf("%s from %s to %s", g.Resource, from, to)
}

// A Log is what is known to have happened to machine objects. The zero Log knows
// nothing and claims to be complete.
type Log struct {
	// Namespace that was watched; empty means all.
	Namespace string
	// Exact means that the times are those of the writes.
	Exact bool
	// Changes in the order of their versions.
	Changes []Change
	// Gaps in what was seen. Those before and after a recording are among them.
	Gaps []Gap
}

// FromHistory returns the log of an in-memory cluster: complete and exact. Writes
// of other kinds are left out.
func FromHistory(writes []draintest.Write) Log {
	log := Log{Exact: true}
	for _, w := range writes {
		version, err := strconv.ParseUint(w.ResourceVersion, 10, 64)
		if err != nil {
			version = 0 // the order is that of the history then
		}
		c := Change{Time: w.Time, Version: version, Object: w.After}
		if w.After == nil {
			c.Object, c.Gone = w.Before, true
		}
		if resourceOf(c.Object) != "" {
			log.Changes = append(log.Changes, c)
		}
	}
	return log
}

// The kinds of which a log tells, by their plural names.
const (
	machines    = "machines"
	machineSets = "machinesets"
	deployments = "machinedeployments"
)

// resourceOf returns the plural name of the kind of an object, and nothing for
// objects of other kinds and for nil.
func resourceOf(o runtime.Object) string {
	switch o := o.(type) {
	case *v1alpha1.Machine:
		if o != nil {
			return machines
		}
	case *v1alpha1.MachineSet:
		if o != nil {
			return machineSets
		}
	case *v1alpha1.MachineDeployment:
		if o != nil {
			return deployments
		}
	}
	return ""
}

// nameOf returns the name of an object, and nothing for nil.
func nameOf(o runtime.Object) string {
	if resourceOf(o) == "" {
		return ""
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetName()
}

// blind says whether machines may have been written at some time around t and
// not been seen at any other.
func (l Log) blind(t time.Time, tolerance time.Duration) bool {
	return slices.ContainsFunc(l.Gaps, func(g Gap) bool {
		return g.Resource == machines &&
			(g.From.IsZero() || !t.Before(g.From.Add(-tolerance))) && (g.To.IsZero() || !t.After(g.To.Add(tolerance)))
	})
}
