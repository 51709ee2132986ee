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
	// ProgressFenced: the Node was fenced, or Err says why not.
	ProgressFenced ProgressType = "Fenced"
	// ProgressUnfenced: the fence was taken back, or Err says why not.
	ProgressUnfenced ProgressType = "Unfenced"
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
// The result has the beginning, the fence, rungs, requests, what is not waited for any more,
// what is waited for with another reason, and the end, in this order. Each pod that is waited for has
// exactly one ProgressGone or ProgressLeft, unless it comes back or its Node is gone. That a
// pod is waited for since it was asked, or refused, is told by its ProgressRequested alone.
func Compare(before, after Decision, results []Result, now time.Time) []Progress {
	c := comparison{before: before, after: after, now: now, node: cmp.Or(after.Node, before.Node)}
	node := subjectOf("node", c.node)
	if before.Started.IsZero() && !after.Started.IsZero() && !after.Started.Before(now) {
		c.add(Progress{Type: ProgressStarted, Subject: node})
	}
	if before.FencedAt.IsZero() && !after.FencedAt.IsZero() && (!before.Started.IsZero() || !after.FencedAt.Before(now)) {
		c.add(Progress{Type: ProgressFenced, Subject: node})
	}
	c.escalated(node)
	for _, r := range results {
		p := Progress{Type: ProgressRequested, Time: r.At, Subject: r.Row.subject(), Reason: r.Row.Reason, Message: r.Row.Message, Row: new(r.Row), Err: r.Err}
		if r.Err != nil {
			p.Reason, p.Message, _ = AnswerOf(r.Err)
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

// awaited is a pod, volume or gate of a decision: one of the three is set.
type awaited struct {
	row    *Row
	volume *VolumeRow
	gate   *machinist.Hold
	// waits says that it is waited for.
	waits bool
}

// awaitedKey is what makes a pod, volume or gate the same in all decisions.
type awaitedKey struct{ kind, namespace, name, uid string }

func (a *awaited) key() awaitedKey {
	switch {
	case a.row != nil:
		return awaitedKey{"pod", a.row.Namespace, a.row.Name, string(a.row.UID)}
	case a.volume != nil:
		return awaitedKey{kind: "volume", name: cmp.Or(a.volume.Volume, a.volume.Attachment)}
	default:
		return awaitedKey{kind: "gate", name: a.gate.Subject}
	}
}

func (a *awaited) reason() machinist.Reason {
	switch {
	case a.row != nil:
		return a.row.Reason
	case a.volume != nil:
		return a.volume.Reason
	default:
		return a.gate.Reason
	}
}

// progress returns what happened to it.
func (a *awaited) progress(t ProgressType) Progress {
	switch {
	case a.row != nil:
		return Progress{Type: t, Subject: a.row.subject(), Reason: a.row.Reason, Message: a.row.Message, Row: new(*a.row)}
	case a.volume != nil:
		return Progress{Type: t, Subject: a.volume.subject(), Reason: a.volume.Reason, Message: a.volume.Message}
	default:
		return Progress{Type: t, Subject: a.gate.Subject, Reason: a.gate.Reason, Message: a.gate.Message}
	}
}

// awaitedOf returns the pods, volumes and gates of a decision. A decision that is over waits
// for nothing.
func awaitedOf(d *Decision) []awaited {
	all := make([]awaited, 0, len(d.Rows)+len(d.Volumes)+len(d.Gates))
	for i := range d.Rows {
		all = append(all, awaited{row: &d.Rows[i], waits: d.Rows[i].Verdict != Ignore && !d.Over()})
	}
	for i := range d.Volumes {
		all = append(all, awaited{volume: &d.Volumes[i], waits: d.Volumes[i].Verdict != Ignore && !d.Over()})
	}
	for i := range d.Gates {
		all = append(all, awaited{gate: &d.Gates[i], waits: !d.Over()})
	}
	return all
}

// waiting tells of what is not waited for any more, and of what is waited for with another
// reason.
func (c *comparison) waiting(results []Result) {
	before, after := awaitedOf(&c.before), awaitedOf(&c.after)
	now := make(map[awaitedKey]*awaited, len(after))
	for i := range after {
		now[after[i].key()] = &after[i]
	}
	said := make(map[awaitedKey]machinist.Reason, len(before)+len(results))
	for i := range before {
		if was := &before[i]; was.waits {
			said[was.key()] = was.reason()
			c.released(was, now[was.key()])
		}
	}
	for i := range results {
		asked := awaited{row: &results[i].Row}
		said[asked.key()], _, _ = AnswerOf(results[i].Err)
	}
	for i := range after {
		is := &after[i]
		asks := is.row != nil && is.row.Verdict.Asks()
		if reason, known := said[is.key()]; is.waits && !asks && !(known && reason == is.reason()) {
			c.add(is.progress(ProgressWaiting))
		}
	}
}

// released tells of a pod or volume that was waited for and is not any more, if so. The end of
// a gate is told by what follows it.
func (c *comparison) released(was, is *awaited) {
	switch {
	case was.gate != nil, is != nil && is.waits:
	case is == nil:
		p := was.progress(ProgressGone)
		p.Reason, p.Message = ReasonGone, ""
		c.add(p)
	case is.row != nil && is.row.gone():
		c.add(is.progress(ProgressGone))
	default:
		c.add(is.progress(ProgressLeft))
	}
}
