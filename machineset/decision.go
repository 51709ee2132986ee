// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Decision is what to do for one set, what it waits for, and when to decide again.
type Decision struct {
	// Actions are the requests, in the order in which to carry them out. If the set cannot be
	// written, skip the others. Otherwise they do not depend on each other:
	//   - [machinist.Update] of the set: its finalizer. [machinist.Update] of a machine: the template
	//     of the set and the preserve annotation.
	//   - [machinist.Refresh] of one machine: give the result to [machine.Expectations.Looked].
	//   - [machinist.Delete] of a machine. Record it with [machine.Expectations.Deleting] and
	//     [NeverJoined.Deleting] before the request. A machine that has to be unchanged is Failed and
	//     may recover: before the request, read its Node from the API server and call
	//     [ReplaceFailed] again.
	//   - [machinist.Create] of machines: see [NewMachine]. Send 1, 2, 4, 8, … at a time,
	//     as long as no request fails. Record each with
	//     [machine.Expectations.Creating] before its request.
	//   - [machinist.Refresh] of the machines without a name: list those that the selector of the set
	//     matches. Give those of the set to [machine.Listed], set [Observation].Proven for the rest of
	//     the process, and decide again.
	Actions []machinist.Action
	// Holds are what is not done, and why.
	Holds []machinist.Hold
	// Events are reported after the status of [Status] is stored.
	Events []machinist.Event
	// Reason is that of the first Delete or Create, else of the first action, else of the first
	// hold, else [reasonSettled].
	Reason machinist.Reason
	// NextCheck is when to decide again, after now. Zero means when an object changes. It is not
	// zero for a decision with actions or holds.
	NextCheck time.Time
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string { return line.Decision(d.Actions, d.Reason, "", d.Holds) }

const (
	// unseen is how long an effect may be missing in the cache before the machine is read from the
	// API server. It is longer than a request may take.
	unseen = 2 * time.Minute
	// recheck is when to decide again about a hold without an end.
	recheck = 10 * time.Minute
)

// draft is a decision that is being made.
type draft struct {
	Decision
	now     time.Time
	pending time.Time // earliest next look at an expectation
}

// subjectOf returns the set as the subject of a hold.
func subjectOf(set *v1alpha1.MachineSet) string { return "machineset/" + set.Name }

// machineSubject returns a machine as the subject of a hold.
func machineSubject(name string) string { return "machine/" + name }

func (d *draft) do(a machinist.Action) { d.Actions = append(d.Actions, a) }

func (d *draft) hold(subject string, reason machinist.Reason, message string, until time.Time) {
	d.Holds = append(d.Holds, machinist.Hold{Subject: subject, Reason: reason, Message: message, Until: until})
}

// wake sets the time of the next look at an expectation, at most unseen from now, because the clock
// of an expectation may have been ahead.
func (d *draft) wake(at time.Time) {
	if latest := d.now.Add(unseen); at.After(latest) {
		at = latest
	}
	d.pending = machinist.Earliest(d.pending, at)
}

// done returns the decision with its reason and next check.
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
		switch a.(type) {
		case machinist.Delete, machinist.Create:
			return reasonOf(a)
		}
	}
	switch {
	case len(d.Actions) > 0:
		return reasonOf(d.Actions[0])
	case len(d.Holds) > 0:
		return d.Holds[0].Reason
	default:
		return reasonSettled
	}
}
