// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the row in one line: action, pod, reason and message. A wait also has its start
// and its next escalation.
func (r Row) String() string {
	var details []string
	if r.Message != "" {
		details = append(details, oneLine(r.Message))
	}
	if r.Action != Ignore && r.Wave != 0 {
		details = append(details, fmt.Sprintf("wave %d", r.Wave))
	}
	if r.Grace != nil && r.Action.IsRequest() {
		details = append(details, fmt.Sprintf("grace %ds", *r.Grace))
	}
	if r.Action == Wait || r.Action == Block {
		if !r.Since.IsZero() {
			details = append(details, "since "+formatTime(r.Since))
		}
		if r.Next != "" {
			details = append(details, escalations[r.Next].happens+" at "+formatTime(r.NextAt))
		}
	}
	return sentence(fmt.Sprintf("%s %s (%s)", r.Action, r.pod(), r.Reason), details)
}

// String returns the volume in one line, like a [Row].
func (v VolumeRow) String() string {
	var details []string
	if v.Attachment != "" && v.Volume != "" {
		details = append(details, "volume "+v.Volume)
	}
	if v.Message != "" {
		details = append(details, oneLine(v.Message))
	}
	if v.Action != Ignore && !v.Since.IsZero() {
		details = append(details, "since "+formatTime(v.Since))
	}
	return sentence(fmt.Sprintf("%s %s (%s)", v.Action, v.subject(), v.Reason), details)
}

// String returns the name of the budget and its numbers, as observed.
func (b Budget) String() string { return string(b.appendTo(nil)) }

// appendTo appends the budget as text, without an allocation for each part.
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
	var details []string
	if f.Cordon.ExcludeFromLoadBalancers {
		details = append(details, "excluded from load balancers")
	}
	if f.Cordon.Owner != "" {
		details = append(details, "owner "+f.Cordon.Owner)
	}
	if f.Cordon.Taint != "" {
		return sentence("taint node "+f.Node+" with "+f.Cordon.Taint, details)
	}
	return sentence("cordon node "+f.Node, details)
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
	if why := cmp.Or(string(p.Outcome), string(p.Reason)); why != "" {
		b.WriteString(" (" + why + ")")
	}
	switch {
	case p.Message != "":
		b.WriteString(": " + p.Message)
	case p.Err != nil:
		b.WriteString(": " + p.Err.Error())
	}
	return b.String()
}

// sentence returns a subject and its details in one line.
func sentence(subject string, details []string) string {
	if len(details) == 0 {
		return subject
	}
	return subject + ": " + strings.Join(details, "; ")
}

// oneLine replaces line breaks, which messages of other components may have.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
