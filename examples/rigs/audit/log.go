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

// Change is a change of a machine object.
type Change struct {
	// Time is the time of the write in an exact log, and otherwise when the recorder
	// received the change.
	Time time.Time
	// Since is the earliest possible time of the write of a delayed change. Zero means
	// that the change was not delayed.
	Since time.Time
	// Version is the resource version of the write, or of the list for a listed change.
	Version uint64
	// Object is the object after the change, or the last version of a deleted object: a
	// *v1alpha1.Machine, MachineSet or MachineDeployment. It must not be changed.
	Object runtime.Object
	// Gone means that the object was deleted.
	Gone bool
	// Listed means that the change is the difference to a list. Other changes may have
	// happened before it.
	Listed bool
}

// String returns the change in one line. The format may change.
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

// earliest returns the earliest possible time of the write.
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

// Gap is an interval in which changes of a kind may be missing.
type Gap struct {
	// Resource is the plural name of the kind.
	Resource string
	// After is the version up to which nothing is missing. Until is the version of the
	// list that ended the gap. Zero means that no list did.
	After, Until uint64
	// From is the last time without missing changes. It is zero for the gap before the
	// recording. To is when the list was received. It is zero for the gap after the
	// recording.
	From, To time.Time
	// CaughtUp means, for the gap after the recording, that all changes before the call of
	// Stop are recorded. If it is false, the end of the recording may be missing. It is not
	// used for other gaps.
	CaughtUp bool
}

// inner reports whether the gap is within the recording.
func (g Gap) inner() bool { return !g.From.IsZero() && !g.To.IsZero() }

// hides reports whether a write before a version may be missing or late because of the gap.
func (g Gap) hides(version uint64) bool {
	return g.After < version && (version < g.Until || g.To.IsZero())
}

// cutsShort reports whether the end of the recording may be missing because of the gap.
func (g Gap) cutsShort() bool { return g.To.IsZero() && !g.CaughtUp }

// afterwards reports whether only changes after the call of Stop may be missing because of the gap.
func (g Gap) afterwards() bool { return g.To.IsZero() && g.CaughtUp }

// String returns the gap in one line. The format may change.
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

// Log is the recorded changes of machine objects. The zero Log is empty and complete.
type Log struct {
	// Namespace is the watched namespace. Empty means all.
	Namespace string
	// Exact means that the times are those of the writes.
	Exact bool
	// Changes are the changes in the order of their versions.
	Changes []Change
	// Gaps are the gaps, including those before and after the recording.
	Gaps []Gap
}

// FromHistory returns the log of a cluster in memory. It is complete and exact. Writes of other
// kinds are omitted.
func FromHistory(writes []draintest.Write) Log {
	log := Log{Exact: true}
	for _, w := range writes {
		version, err := strconv.ParseUint(w.ResourceVersion, 10, 64)
		if err != nil {
			version = 0 // the history has the order
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

// These are the plural names of the kinds in a log.
const (
	machines    = "machines"
	machineSets = "machinesets"
	deployments = "machinedeployments"
)

// resourceOf returns the plural name of the kind of an object, or "" for other objects and nil.
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

// nameOf returns the name of an object, or "" for nil.
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

// blind reports whether writes of machines around t may be missing.
func (l Log) blind(t time.Time, tolerance time.Duration) bool {
	return slices.ContainsFunc(l.Gaps, func(g Gap) bool {
		return g.Resource == machines &&
			(g.From.IsZero() || !t.Before(g.From.Add(-tolerance))) && (g.To.IsZero() || !t.After(g.To.Add(tolerance)))
	})
}
