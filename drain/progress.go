// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// Progress says what happened between two consecutive plans of one drain, and what the
// requests in between came to, with now the time of the plan after. The zero Decision comes
// before the first one. Between two equal plans without requests nothing has happened.
//
// A plan that could observe nothing tells of its requests alone, and is no plan to
// compare with: the one before it still is.
//
//	events := drain.Compare(last, plan, results, now)
//	if plan.Reason != drain.ReasonNotObserved {
//		last = plan
//	}
//
// The events come in the order of their types: the beginning, the fence, rungs that were
// reached, requests, pods, volumes and gates in the order of the plans, the end. A pod
// that is waited for has exactly one ProgressGone or ProgressLeft if it has neither come
// back nor its Node has gone. That a pod is waited for since it was asked, or refused, is
// told by its ProgressRequested alone.
func Compare(before, after Decision, results []Result, now time.Time) []Progress {
	c := comparison{before: before, after: after, now: now, node: cmp.Or(after.Node, before.Node)}
	if before.Started.IsZero() && !after.Started.IsZero() && !after.Started.Before(now) {
		c.add(Progress{Type: ProgressStarted, Subject: nodeSubject(c.node)})
	}
	if before.FencedAt.IsZero() && !after.FencedAt.IsZero() && (!before.Started.IsZero() || !after.FencedAt.Before(now)) {
		c.add(Progress{Type: ProgressFenced, Subject: nodeSubject(c.node)})
	}
	c.escalated()
	c.requested(results)
	if after.planned() {
		c.pods(results)
		c.volumes()
		c.gates()
	}
	if after.Over() && !before.Over() {
		c.add(Progress{Type: ProgressEnded, Subject: nodeSubject(c.node), Reason: after.Reason, Message: after.Message, Outcome: after.Outcome})
	}
	return c.events
}

// planned says whether the plan decided about pods.
func (p Decision) planned() bool { return p.Reason == "" }

// comparison collects events.
type comparison struct {
	before, after Decision
	now           time.Time
	node          string
	events        []Progress
}

func (c *comparison) add(e Progress) {
	e.Node, e.Started = c.node, c.after.Started
	if e.Started.IsZero() {
		e.Started = c.before.Started
	}
	if e.Time.IsZero() {
		e.Time = c.now
	}
	c.events = append(c.events, e)
}

// escalated tells of the rungs that were not reached before.
func (c *comparison) escalated() {
	known := slices.Clone(c.before.Rungs)
	for _, rung := range c.after.Rungs {
		if i := slices.Index(known, rung); i >= 0 {
			known = slices.Delete(known, i, i+1)
			continue
		}
		c.add(Progress{
			Type: ProgressEscalated, Subject: nodeSubject(c.node), Reason: machinist.Reason(rung.Action), Message: rung.String(), Rung: &rung,
		})
	}
}

// requested tells what requests came to.
func (c *comparison) requested(results []Result) {
	for _, r := range results {
		row := r.Row
		e := Progress{Type: ProgressRequested, Time: r.At, Subject: row.subject(), Reason: row.Reason, Message: row.Message, Row: &row, Err: r.Err}
		if r.Err != nil {
			e.Reason, e.Message, _ = AnswerOf(r.Err)
		}
		c.add(e)
	}
}

// podKey is what makes a pod the same pod.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func (r *Row) key() podKey { return podKey{r.Namespace, r.Name, r.UID} }

func (r *Row) subject() string { return "pod/" + r.pod() }

// pods tells of the pods that are not waited for any more, and of those that are waited
// for with another reason.
func (c *comparison) pods(results []Result) {
	now := make(map[podKey]*Row, len(c.after.Rows))
	for i := range c.after.Rows {
		now[c.after.Rows[i].key()] = &c.after.Rows[i]
	}
	said := make(map[podKey]machinist.Reason, len(c.before.Rows)+len(results))
	for i := range c.before.Rows {
		row := &c.before.Rows[i]
		if row.Verdict == Ignore || c.before.Over() {
			continue
		}
		said[row.key()] = row.Reason
		c.released(*row, now[row.key()])
	}
	for i := range results {
		reason, _, _ := AnswerOf(results[i].Err)
		said[results[i].Row.key()] = reason
	}
	for _, row := range c.after.Rows {
		waits := !c.after.Over() && (row.Verdict == Wait || row.Verdict == Block)
		if reason, is := said[row.key()]; waits && !(is && reason == row.Reason) {
			c.add(Progress{Type: ProgressWaiting, Subject: row.subject(), Reason: row.Reason, Message: row.Message, Row: &row})
		}
	}
}

// released tells of a pod that was waited for and is not any more, if so.
func (c *comparison) released(was Row, is *Row) {
	switch {
	case is == nil:
		c.add(Progress{Type: ProgressGone, Subject: was.subject(), Reason: ReasonGone, Row: &was})
	case is.Verdict == Ignore && (is.Reason == ReasonFinished || is.Reason == ReasonElsewhere):
		row := *is
		c.add(Progress{Type: ProgressGone, Subject: was.subject(), Reason: is.Reason, Message: is.Message, Row: &row})
	case is.Verdict == Ignore || c.after.Over():
		row := *is
		c.add(Progress{Type: ProgressLeft, Subject: was.subject(), Reason: is.Reason, Message: is.Message, Row: &row})
	}
}

// key is what a volume is known by in all plans.
func (v VolumeRow) key() string {
	if v.Volume != "" {
		return v.Volume
	}
	return v.Attachment
}

// volumes tells of volumes as pods does of pods.
func (c *comparison) volumes() {
	now := make(map[string]VolumeRow, len(c.after.Volumes))
	for _, v := range c.after.Volumes {
		now[v.key()] = v
	}
	said := make(map[string]machinist.Reason, len(c.before.Volumes))
	for _, v := range c.before.Volumes {
		if v.Verdict == Ignore || c.before.Over() {
			continue
		}
		said[v.key()] = v.Reason
		is, there := now[v.key()]
		c.moved(v, is, there)
	}
	for _, v := range c.after.Volumes {
		reason, is := said[v.key()]
		if v.Verdict != Ignore && !c.after.Over() && !(is && reason == v.Reason) {
			c.add(Progress{Type: ProgressWaiting, Subject: v.subject(), Reason: v.Reason, Message: v.Message})
		}
	}
}

// moved tells of a volume that was waited for, if there is something to tell.
func (c *comparison) moved(was, is VolumeRow, there bool) {
	elsewhere := is.Reason == ReasonReattaching || is.Reason == ReasonNotReattached || is.Reason == ReasonUnschedulable
	off := was.Reason == ReasonReattaching
	if !off && (!there || elsewhere) {
		c.add(Progress{Type: ProgressDetached, Subject: was.subject()})
	}
	switch {
	case !there && off:
		c.add(Progress{Type: ProgressReattached, Subject: was.subject()})
	case there && (is.Verdict == Ignore || c.after.Over()):
		c.add(Progress{Type: ProgressLeft, Subject: is.subject(), Reason: is.Reason, Message: is.Message})
	}
}

// gates tells of gates that are closed, or are for another reason.
func (c *comparison) gates() {
	if c.after.Over() {
		return
	}
	for _, g := range c.after.Gates {
		known := func(h machinist.Hold) bool { return h.Subject == g.Subject && h.Reason == g.Reason }
		if !slices.ContainsFunc(c.before.Gates, known) {
			c.add(Progress{Type: ProgressWaiting, Subject: g.Subject, Reason: g.Reason, Message: g.Message})
		}
	}
}

func nodeSubject(name string) string { return "node/" + name }
