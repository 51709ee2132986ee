// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the row in one line: what is done with the pod and why, and, for one
// that waits, since when and what it escalates to.
func (r Row) String() string {
	var said []string
	if r.Message != "" {
		said = append(said, oneLine(r.Message))
	}
	if r.Action != Ignore && r.Wave != 0 {
		said = append(said, fmt.Sprintf("wave %d", r.Wave))
	}
	if r.Grace != nil && r.Action.IsRequest() {
		said = append(said, fmt.Sprintf("grace %ds", *r.Grace))
	}
	if r.Action == Wait || r.Action == Block {
		if !r.Since.IsZero() {
			said = append(said, "since "+formatTime(r.Since))
		}
		if r.Next != "" {
			said = append(said, escalations[r.Next].happens+" at "+formatTime(r.NextAt))
		}
	}
	return sentence(fmt.Sprintf("%s %s (%s)", r.Action, r.pod(), r.Reason), said)
}

// String returns the volume in one line, like a [Row].
func (v VolumeRow) String() string {
	var said []string
	if v.Attachment != "" && v.Volume != "" {
		said = append(said, "volume "+v.Volume)
	}
	if v.Message != "" {
		said = append(said, oneLine(v.Message))
	}
	if v.Action != Ignore && !v.Since.IsZero() {
		said = append(said, "since "+formatTime(v.Since))
	}
	return sentence(fmt.Sprintf("%s %s (%s)", v.Action, v.subject(), v.Reason), said)
}

// String returns the name of the budget and its numbers, as observed.
func (b Budget) String() string { return string(b.appendTo(nil)) }

// appendTo appends the budget as text. A step may have many of them to tell of.
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

func (b Budget) appendPods(s []byte) []byte {
	s = strconv.AppendInt(s, int64(b.Healthy), 10)
	s = strconv.AppendInt(append(s, " of "...), int64(b.Expected), 10)
	s = strconv.AppendInt(append(s, " healthy, "...), int64(b.Desired), 10)
	return append(s, " desired"...)
}

// String returns in one line how the Node is cordoned.
func (f SetCordon) String() string {
	var said []string
	if f.Cordon.ExcludeFromLoadBalancers {
		said = append(said, "excluded from load balancers")
	}
	if f.Cordon.Owner != "" {
		said = append(said, "owner "+f.Cordon.Owner)
	}
	if f.Cordon.Taint != "" {
		return sentence("taint node "+f.Node+" with "+f.Cordon.Taint, said)
	}
	return sentence("cordon node "+f.Node, said)
}

// String returns the progress in one line, without its time and its Node.
func (p Progress) String() string {
	var b strings.Builder
	b.WriteString(string(p.Type))
	if p.Subject != "" {
		b.WriteString(" " + p.Subject)
	}
	if p.Type == ProgressRequested && p.Row != nil {
		b.WriteString(" to " + string(p.Row.Action))
	}
	switch {
	case p.Outcome != "":
		fmt.Fprintf(&b, " (%s)", p.Outcome)
	case p.Reason != "":
		fmt.Fprintf(&b, " (%s)", p.Reason)
	}
	switch {
	case p.Message != "":
		b.WriteString(": " + p.Message)
	case p.Err != nil:
		b.WriteString(": " + p.Err.Error())
	}
	return b.String()
}

// sentence puts what is said behind a colon.
func sentence(about string, said []string) string {
	if len(said) == 0 {
		return about
	}
	return about + ": " + strings.Join(said, "; ")
}

// oneLine replaces line breaks, which others may have put into a message.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
