// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
)

// String returns the row in one line: what is done with the pod and why, and, for one
// that waits, since when and what it escalates to.
func (r Row) String() string {
	said := words(r.Message)
	switch {
	case r.Verdict == Ignore || r.Wave == 0:
	case r.Wave == LastWave:
		said = append(said, "last wave")
	default:
		said = append(said, fmt.Sprintf("wave %d", r.Wave))
	}
	if r.Grace != nil && r.Verdict.strength() > 0 {
		said = append(said, fmt.Sprintf("grace %ds", *r.Grace))
	}
	if r.Verdict == Wait || r.Verdict == Block {
		said = append(said, since(r.Since)...)
		if r.Next != "" {
			said = append(said, r.Next.happens()+" at "+formatTime(r.NextAt))
		}
	}
	return sentence(fmt.Sprintf("%s %s (%s)", r.Verdict, r.pod(), r.Reason), said)
}

// pod returns the name of the pod with its namespace.
func (r Row) pod() string { return r.Namespace + "/" + r.Name }

// happens says what an escalation does to a pod.
func (e Escalation) happens() string {
	switch e {
	case CapGrace:
		return "its grace is cut"
	case SkipTerminating:
		return "not waited for"
	case IgnoreBudgets, IgnoreProtection:
		return "deleted"
	case ForceDeletePods:
		return "force-deleted"
	case Proceed:
		return "left behind"
	case GiveUp:
		return "given up"
	default:
		return string(e)
	}
}

// String returns the volume in one line, like a [Row].
func (v VolumeRow) String() string {
	var said []string
	if v.Attachment != "" && v.Volume != "" {
		said = append(said, "volume "+v.Volume)
	}
	said = append(said, words(v.Message)...)
	if v.Verdict != Ignore {
		said = append(said, since(v.Since)...)
	}
	return sentence(fmt.Sprintf("%s %s (%s)", v.Verdict, v.subject(), v.Reason), said)
}

func (v VolumeRow) subject() string {
	if v.Attachment != "" {
		return "volumeattachment/" + v.Attachment
	}
	return "volume/" + v.Volume
}

// holdText returns a hold in one line: what is waited for, why and since when.
func holdText(h machinist.Hold) string {
	return sentence(fmt.Sprintf("wait %s (%s)", h.Subject, h.Reason), append(words(h.Message), since(h.Since)...))
}

// String returns the name of the budget and its numbers, as observed.
func (b Budget) String() string { return string(b.appendTo(nil)) }

// appendTo appends the budget as text. A round may have many of them to tell of.
func (b Budget) appendTo(s []byte) []byte {
	s = append(s, "budget "...)
	s = append(append(append(s, b.Namespace...), '/'), b.Name...)
	s = strconv.AppendInt(append(s, " allows "...), int64(b.Allowed), 10)
	if b.Allowed == 1 {
		s = append(s, " disruption: "...)
	} else {
		s = append(s, " disruptions: "...)
	}
	return b.appendPods(s)
}

// pods returns the numbers of the pods of the budget.
func (b Budget) pods() string { return string(b.appendPods(nil)) }

func (b Budget) appendPods(s []byte) []byte {
	s = strconv.AppendInt(s, int64(b.Healthy), 10)
	s = strconv.AppendInt(append(s, " of "...), int64(b.Expected), 10)
	s = strconv.AppendInt(append(s, " healthy, "...), int64(b.Desired), 10)
	return append(s, " desired"...)
}

// hold returns what is waited for.
func (r *Row) hold() machinist.Hold {
	return machinist.Hold{Subject: r.subject(), Reason: r.Reason, Message: r.Message, Since: r.Since, Until: r.Until}
}

// Holds returns everything that the drain waits for, also what something is done
// about now: what concerns the Node first, then pods, then volumes.
func (p Decision) Holds() []machinist.Hold {
	var holds []machinist.Hold
	if p.Reason == ReasonNotObserved || p.Fence != nil && p.Outcome == Draining {
		reason := p.Reason
		if reason == "" {
			reason = ReasonNotFenced
		}
		holds = append(holds, machinist.Hold{Subject: "node/" + p.Node, Reason: reason, Message: p.Message, Until: p.NextCheck})
	}
	holds = append(holds, p.Gates...)
	for _, r := range p.Rows {
		if r.Verdict != Ignore {
			holds = append(holds, r.hold())
		}
	}
	for _, v := range p.Volumes {
		if v.Verdict != Ignore {
			holds = append(holds, machinist.Hold{Subject: v.subject(), Reason: v.Reason, Message: v.Message, Since: v.Since, Until: v.Until})
		}
	}
	return holds
}

// String returns the plan as text for people, a line for each thing: what is done to
// the Node, what is waited for, pods, volumes, what is not known, how far the drain has
// escalated, and when it is looked at again.
func (p Decision) String() string {
	var b strings.Builder
	line := func(s string) { b.WriteString(s + "\n") }
	if p.Reason != "" {
		line(sentence("nothing ("+string(p.Reason)+")", words(p.Message)))
	} else if p.Message != "" {
		line(oneLine(p.Message))
	}
	if p.Fence != nil {
		line(p.Fence.String())
	}
	for _, g := range p.Gates {
		line(holdText(g))
	}
	for _, r := range p.Rows {
		line(r.String())
	}
	for _, v := range p.Volumes {
		line(v.String())
	}
	if len(p.NotEvaluated) > 0 {
		line(p.notEvaluated())
	}
	for _, r := range p.Rungs {
		line("reached: " + r.String())
	}
	if p.Next != "" {
		line(p.nextRung())
	}
	line(p.end())
	return b.String()
}

// end says how the drain ended, or when it is looked at again.
func (p Decision) end() string {
	switch {
	case p.Over():
		return string(p.Outcome)
	case p.NextCheck.IsZero():
		return "until something changes"
	default:
		return "until something changes, or " + formatTime(p.NextCheck)
	}
}

func (p Decision) notEvaluated() string {
	names := make([]string, len(p.NotEvaluated))
	for i, s := range p.NotEvaluated {
		names[i] = string(s)
	}
	return "not evaluated: " + strings.Join(names, ", ")
}

func (p Decision) nextRung() string { return "next: " + string(p.Next) + " at " + formatTime(p.NextAt) }

// String says in one line how the Node is fenced.
func (f SetFence) String() string {
	var said []string
	if f.Fence.ExcludeFromLoadBalancers {
		said = append(said, "excluded from load balancers")
	}
	if f.Fence.OutOfService {
		said = append(said, "out of service")
	}
	if f.Fence.Owner != "" {
		said = append(said, "owner "+f.Fence.Owner)
	}
	if f.Fence.Taint != "" {
		return sentence("taint node "+f.Node+" with "+f.Fence.Taint, said)
	}
	return sentence("cordon node "+f.Node, said)
}

// sentence puts what is said behind a colon.
func sentence(about string, said []string) string {
	if len(said) == 0 {
		return about
	}
	return about + ": " + strings.Join(said, "; ")
}

// words is a message, if there is one.
func words(message string) []string {
	if message == "" {
		return nil
	}
	return []string{oneLine(message)}
}

func since(at time.Time) []string {
	if at.IsZero() {
		return nil
	}
	return []string{"since " + formatTime(at)}
}

// oneLine replaces line breaks, which others may have put into a message.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
