// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
)

// ProgressType is what happened in a drain.
type ProgressType string

// The types of progress.
const (
	// ProgressStarted: the first decision was made.
	ProgressStarted ProgressType = "Started"
	// ProgressCordoned: the Node was cordoned, or Err says why not.
	ProgressCordoned ProgressType = "Cordoned"
	// ProgressUncordoned: the cordon was taken back, or Err says why not.
	ProgressUncordoned ProgressType = "Uncordoned"
	// ProgressRequested: a pod was asked to go; Err says if the API server refused.
	ProgressRequested ProgressType = "Requested"
	// ProgressWaiting: a pod, volume or gate is waited for, with a new reason.
	ProgressWaiting ProgressType = "Waiting"
	// ProgressGone: a pod or volume that was waited for has gone: the pod does not run on the
	// Node any more, and the volume is where it was to be.
	ProgressGone ProgressType = "Gone"
	// ProgressLeft: a pod or volume that was waited for is not any more, and has not gone.
	ProgressLeft ProgressType = "Left"
	// ProgressEscalated: a rung of the ladder was reached.
	ProgressEscalated ProgressType = "Escalated"
	// ProgressEnded: the drain is over; the outcome says how.
	ProgressEnded ProgressType = "Ended"
)

// Progress is one thing that happened in a drain.
type Progress struct {
	// Type of the progress.
	Type ProgressType
	// Time of the step in which it was noticed; of a request, when it was made.
	Time time.Time
	// Node that is drained.
	Node string
	// Started is when its drain began, if it has.
	Started time.Time
	// Subject names the object, such as pod/shop/web-1.
	Subject string
	// Reason is why, as a stable word.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Row is that of the pod, if the progress is about one: the last that there was of a
	// pod that has gone, and of one that was asked to go the one that was carried out.
	Row *Row
	// Rung that was reached, if the progress is about one.
	Rung *Rung
	// Outcome of a drain that ended.
	Outcome Outcome
	// Err is what the API server said, or nil.
	Err error
}

// Compare returns what happened between two consecutive decisions of one drain, and what the
// requests in between came to, with now the time of the later decision. The zero Decision comes
// before the first one. Between two equal decisions without requests nothing has happened.
//
// A decision that could observe nothing tells of its requests alone. Do not compare with it;
// the one before it still counts.
//
// The result has the beginning, the cordon, rungs, requests, what is not waited for any more,
// what is waited for with another reason, and the end, in this order. Each pod that is waited for has
// exactly one ProgressGone or ProgressLeft, unless it comes back or its Node is gone. That a
// pod is waited for since it was asked, or refused, is told by its ProgressRequested alone.
func Compare(before, after Decision, results []Result, now time.Time) []Progress {
	c := comparison{before: before, after: after, now: now, node: cmp.Or(after.Node, before.Node)}
	node := subjectOf("node", c.node)
	if before.Started.IsZero() && !after.Started.IsZero() && !after.Started.Before(now) {
		c.add(Progress{Type: ProgressStarted, Subject: node})
	}
	if before.CordonedAt.IsZero() && !after.CordonedAt.IsZero() && (!before.Started.IsZero() || !after.CordonedAt.Before(now)) {
		c.add(Progress{Type: ProgressCordoned, Subject: node})
	}
	c.escalated(node)
	for _, r := range results {
		p := Progress{Type: ProgressRequested, Time: r.At, Subject: r.Row.subject(), Reason: r.Row.Reason, Message: r.Row.Message, Row: new(r.Row), Err: r.Err}
		if r.Err != nil {
			p.Reason, p.Message, _ = ResponseOf(r.Err)
		}
		c.add(p)
	}
	if after.Reason == "" { // it decided about pods
		c.waiting(results)
	}
	if after.Over() && !before.Over() {
		c.add(Progress{Type: ProgressEnded, Subject: node, Reason: after.Reason, Message: after.Message, Outcome: after.Outcome})
	}
	return c.found
}

// comparison collects progress.
type comparison struct {
	before, after Decision
	now           time.Time
	node          string
	found         []Progress
}

func (c *comparison) add(p Progress) {
	p.Node, p.Started = c.node, c.after.Started
	if p.Started.IsZero() {
		p.Started = c.before.Started
	}
	if p.Time.IsZero() {
		p.Time = c.now
	}
	c.found = append(c.found, p)
}

// escalated tells of the rungs that were not reached before.
func (c *comparison) escalated(node string) {
	known := slices.Clone(c.before.Rungs)
	for _, rung := range c.after.Rungs {
		if i := slices.Index(known, rung); i >= 0 {
			known = slices.Delete(known, i, i+1)
			continue
		}
		c.add(Progress{Type: ProgressEscalated, Subject: node, Reason: machinist.Reason(rung.Action), Message: rung.String(), Rung: &rung})
	}
}

// awaited is a pod, volume or gate of a decision.
type awaited struct {
	key awaitedKey
	// waits says that it is waited for, asks that something is asked of it, and gone that it
	// is a pod that does not run on the Node any more.
	waits, asks, gone bool
	// told is what is to be said about it, without a type.
	told Progress
}

// awaitedKey is what makes a pod, volume or gate the same in all decisions.
type awaitedKey struct{ kind, namespace, name, uid string }

func podKey(row *Row) awaitedKey { return awaitedKey{"pod", row.Namespace, row.Name, string(row.UID)} }

// awaitedOf returns the pods, volumes and gates of a decision. A decision that is over waits
// for nothing.
func awaitedOf(d *Decision) []awaited {
	all := make([]awaited, 0, len(d.Rows)+len(d.Volumes)+len(d.Gates))
	for i := range d.Rows {
		r := &d.Rows[i]
		all = append(all, awaited{
			key: podKey(r), waits: r.Action != Ignore && !d.Over(), asks: r.Action.IsRequest(), gone: r.gone(),
			told: Progress{Subject: r.subject(), Reason: r.Reason, Message: r.Message, Row: r},
		})
	}
	for i := range d.Volumes {
		v := &d.Volumes[i]
		all = append(all, awaited{
			key: awaitedKey{kind: "volume", name: cmp.Or(v.Volume, v.Attachment)}, waits: v.Action != Ignore && !d.Over(),
			told: Progress{Subject: v.subject(), Reason: v.Reason, Message: v.Message},
		})
	}
	for _, g := range d.Gates {
		all = append(all, awaited{
			key: awaitedKey{kind: gateKind, name: g.Subject}, waits: !d.Over(),
			told: Progress{Subject: g.Subject, Reason: g.Reason, Message: g.Message},
		})
	}
	return all
}

const gateKind = "gate"

// waiting tells of what is not waited for any more, and of what is waited for with another
// reason.
func (c *comparison) waiting(results []Result) {
	before, after := awaitedOf(&c.before), awaitedOf(&c.after)
	now := make(map[awaitedKey]*awaited, len(after))
	for i := range after {
		now[after[i].key] = &after[i]
	}
	said := make(map[awaitedKey]machinist.Reason, len(before)+len(results))
	for i := range before {
		if was := &before[i]; was.waits {
			said[was.key] = was.told.Reason
			c.released(was, now[was.key])
		}
	}
	for i := range results {
		said[podKey(&results[i].Row)], _, _ = ResponseOf(results[i].Err)
	}
	for _, is := range after {
		if reason, known := said[is.key]; is.waits && !is.asks && !(known && reason == is.told.Reason) {
			c.tell(ProgressWaiting, is.told)
		}
	}
}

// released tells of a pod or volume that was waited for and is not any more, if so. The end of
// a gate is told by what follows it.
func (c *comparison) released(was, is *awaited) {
	switch {
	case was.key.kind == gateKind, is != nil && is.waits:
	case is == nil:
		was.told.Reason, was.told.Message = ReasonGone, ""
		c.tell(ProgressGone, was.told)
	case is.gone:
		c.tell(ProgressGone, is.told)
	default:
		c.tell(ProgressLeft, is.told)
	}
}

// tell adds progress of a pod, volume or gate.
func (c *comparison) tell(t ProgressType, p Progress) {
	p.Type = t
	if p.Row != nil {
		p.Row = new(*p.Row)
	}
	c.add(p)
}
