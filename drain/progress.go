// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
)

// ProgressType is the type of a [Progress].
type ProgressType string

// The types of progress.
const (
	// ProgressStarted means that the first decision was made.
	ProgressStarted ProgressType = "Started"
	// ProgressCordoned means that the Node was cordoned, or Err is why not.
	ProgressCordoned ProgressType = "Cordoned"
	// ProgressUncordoned means that the Node was uncordoned, or Err is why not.
	ProgressUncordoned ProgressType = "Uncordoned"
	// ProgressRequested means that a request for a pod was made. Err is its error.
	ProgressRequested ProgressType = "Requested"
	// ProgressWaiting means that the drain waits for a pod, volume or gate for a new reason.
	ProgressWaiting ProgressType = "Waiting"
	// ProgressGone means that a pod does not run on the Node anymore, or that a volume was
	// detached or attached to another Node.
	ProgressGone ProgressType = "Gone"
	// ProgressLeft means that the drain no longer waits for a pod or volume that is not gone.
	ProgressLeft ProgressType = "Left"
	// ProgressEscalated means that a rung of the ladder was reached.
	ProgressEscalated ProgressType = "Escalated"
	// ProgressEnded means that the drain has ended. Outcome says how.
	ProgressEnded ProgressType = "Ended"
)

// Progress is one event of a drain.
type Progress struct {
	// Type is what happened.
	Type ProgressType
	// Time is that of the step that observed it, or of the request.
	Time time.Time
	// Node is the name of the drained Node.
	Node string
	// Started is when the drain began. Zero means not yet.
	Started time.Time
	// Subject is the object, such as "pod/shop/web-1".
	Subject string
	// Reason is why, a stable word.
	Reason machinist.Reason
	// Message is why, for people. Its text may change.
	Message string
	// Row is the row of the pod, or nil: for a pod that is gone the last one, for a request
	// the one that was carried out.
	Row *Row
	// Pod is the pod as last observed, or nil. An executor sets it; [Compare] does not. Do not change it.
	Pod *corev1.Pod
	// Rung is the reached rung, or nil.
	Rung *Rung
	// Outcome is that of an ended drain.
	Outcome Outcome
	// Err is the error of the API server, or nil.
	Err error
}

// Compare returns what happened between two consecutive decisions of one drain, and the results of
// the requests between them. now is the time of the later decision. The zero Decision precedes the
// first one.
//
// If the later decision could observe nothing, only requests are returned. Use the earlier
// decision again for the next comparison.
//
// The result has the start, the cordon, rungs, requests, ended waits, new waits and the end, in
// this order. Each pod that the drain waits for has exactly one ProgressGone or ProgressLeft,
// unless it returns or its Node is gone. A wait that follows from a request has no
// ProgressWaiting.
func Compare(before, after Decision, results []Result, now time.Time) []Progress {
	c := comparison{before: before, after: after, now: now, node: cmp.Or(after.Node, before.Node)}
	node := "node/" + c.node
	if before.Started.IsZero() && !after.Started.IsZero() && !after.Started.Before(now) {
		c.add(Progress{Type: ProgressStarted, Subject: node})
	}
	if before.CordonedAt.IsZero() && !after.CordonedAt.IsZero() && (!before.Started.IsZero() || !after.CordonedAt.Before(now)) {
		c.add(Progress{Type: ProgressCordoned, Subject: node})
	}
	c.escalated(node)
	for _, r := range results {
		p := Progress{Type: ProgressRequested, Time: r.At, Subject: r.Row.subject(), Reason: r.Row.Reason, Message: r.Row.Message, Row: ptr.To(r.Row), Err: r.Err}
		if r.Err != nil {
			p.Reason, p.Message, _ = r.Response()
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

// escalated adds the rungs that were not reached before.
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
	// waits means that the drain waits for it. requested means that the decision has a request for
	// it. gone means that it is a pod that does not run on the Node anymore.
	waits, requested, gone bool
	// progress is what to report, without a type.
	progress Progress
}

// awaitedKey identifies a pod, volume or gate in all decisions.
type awaitedKey struct{ kind, namespace, name, uid string }

func podKey(row *Row) awaitedKey { return awaitedKey{"pod", row.Namespace, row.Name, string(row.UID)} }

// awaitedOf returns the pods, volumes and gates of a decision. An ended drain waits for nothing.
func awaitedOf(d *Decision) []awaited {
	all := make([]awaited, 0, len(d.Rows)+len(d.Volumes)+len(d.Gates))
	for i := range d.Rows {
		r := &d.Rows[i]
		all = append(all, awaited{
			key: podKey(r), waits: r.Action != Ignore && !d.Over(), requested: r.Action.IsRequest(), gone: r.gone(),
			progress: Progress{Subject: r.subject(), Reason: r.Reason, Message: r.Message, Row: r},
		})
	}
	for i := range d.Volumes {
		v := &d.Volumes[i]
		all = append(all, awaited{
			key: awaitedKey{kind: "volume", name: cmp.Or(v.Volume, v.Attachment)}, waits: v.Action != Ignore && !d.Over(),
			progress: Progress{Subject: v.subject(), Reason: v.Reason, Message: v.Message},
		})
	}
	for _, g := range d.Gates {
		all = append(all, awaited{
			key: awaitedKey{kind: gateKind, name: g.Subject}, waits: !d.Over(),
			progress: Progress{Subject: g.Subject, Reason: g.Reason, Message: g.Message},
		})
	}
	return all
}

const gateKind = "gate"

// waiting adds ended waits, and waits for another reason.
func (c *comparison) waiting(results []Result) {
	before, after := awaitedOf(&c.before), awaitedOf(&c.after)
	now := make(map[awaitedKey]*awaited, len(after))
	for i := range after {
		now[after[i].key] = &after[i]
	}
	reported := make(map[awaitedKey]machinist.Reason, len(before)+len(results))
	for i := range before {
		if was := &before[i]; was.waits {
			reported[was.key] = was.progress.Reason
			c.released(was, now[was.key])
		}
	}
	for i := range results {
		reported[podKey(&results[i].Row)], _, _ = results[i].Response()
	}
	for _, is := range after {
		if reason, known := reported[is.key]; is.waits && !is.requested && !(known && reason == is.progress.Reason) {
			c.report(ProgressWaiting, is.progress)
		}
	}
}

// released adds the end of a wait for a pod or volume. The end of a gate is not reported.
func (c *comparison) released(was, is *awaited) {
	switch {
	case was.key.kind == gateKind, is != nil && is.waits:
	case is == nil:
		was.progress.Reason, was.progress.Message = reasonGone, ""
		c.report(ProgressGone, was.progress)
	case is.gone:
		c.report(ProgressGone, is.progress)
	default:
		c.report(ProgressLeft, is.progress)
	}
}

// report adds the progress of a pod, volume or gate.
func (c *comparison) report(t ProgressType, p Progress) {
	p.Type = t
	if p.Row != nil {
		p.Row = ptr.To(*p.Row)
	}
	c.add(p)
}
