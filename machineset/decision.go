// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

// A Decision is what to do now for one set, why the rest is not done, and when
// to ask again.
type Decision struct {
	// Actions are in the order in which they are to be carried out: finalizer,
	// Syncs, Looks, then Deletes or one Create. If that of the finalizer fails,
	// leave out the others; they do not depend on each other.
	Actions []Action
	// Holds are what is not done, and why.
	Holds []machinist.Hold
	// Events are to be reported once the status that [Status] returns is stored.
	Events []machinist.Event
	// Reason sums the decision up: that of the first Delete or Create, else of the
	// first action, else of the first hold, else [ReasonSettled].
	Reason machinist.Reason
	// NextCheck is when to ask again, after now; zero if only a change of an
	// object can help. A decision with actions or holds always has one.
	NextCheck time.Time
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string { return line.Decision(d.Actions, d.Reason, "", d.Holds) }

const (
	// unseen is how long the cache may take to show an effect before the machine is
	// read live. It is longer than an API call may take: a creation that is still to
	// happen is not given up.
	unseen = 2 * time.Minute
	// recheck is when to look again at a hold without an end.
	recheck = 10 * time.Minute
)

// draft is a decision in the making.
type draft struct {
	Decision
	now     time.Time
	pending time.Time // earliest next look at an expectation
}

func (d *draft) do(a Action) { d.Actions = append(d.Actions, a) }

func (d *draft) hold(subject string, reason machinist.Reason, message string, until time.Time) {
	d.Holds = append(d.Holds, machinist.Hold{Subject: subject, Reason: reason, Message: message, Until: until})
}

// wake moves the next look at an expectation forward, never further than unseen from
// now: an expectation may carry the time of a clock that was ahead.
func (d *draft) wake(at time.Time) {
	if latest := d.now.Add(unseen); at.After(latest) {
		at = latest
	}
	d.pending = machinist.Earliest(d.pending, at)
}

// done fills in the reason and the next check.
func (d *draft) done() Decision {
	d.Reason = d.summary()
	next := d.pending
	if len(d.Actions) > 0 {
		next = machinist.Earliest(next, d.now.Add(unseen))
	}
	for _, h := range d.Holds {
		next = machinist.Earliest(next, cmp.Or(h.Until, d.now.Add(recheck)))
	}
	d.NextCheck = next
	return d.Decision
}

func (d *draft) summary() machinist.Reason {
	for _, a := range d.Actions {
		switch a := a.(type) {
		case Delete:
			return a.Reason
		case Create:
			return ReasonTooFew
		case SetFinalizers, Sync, Look: // they count only if nothing is created or deleted
		}
	}
	switch {
	case len(d.Actions) > 0:
		return d.Actions[0].reason()
	case len(d.Holds) > 0:
		return d.Holds[0].Reason
	default:
		return ReasonSettled
	}
}
