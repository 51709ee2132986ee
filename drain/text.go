// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"
	"time"
)

// String returns the row in one line.
func (r Row) String() string {
	s := fmt.Sprintf("%s %s/%s (%s)", r.Verdict, r.Namespace, r.Name, r.Reason)
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// Holds returns everything that the drain waits for, also what something is done
// about now: what concerns the Node first, then pods, then volumes.
func (p Plan) Holds() []Hold {
	var holds []Hold
	if p.Reason == ReasonNotObserved || p.Fence != nil && p.Outcome == Draining {
		reason := p.Reason
		if reason == "" {
			reason = ReasonNotFenced
		}
		holds = append(holds, Hold{Subject: "node/" + p.Node, Reason: reason, Until: p.NextCheck})
	}
	holds = append(holds, p.Gates...)
	for _, r := range p.Rows {
		if r.Verdict != Ignore {
			holds = append(holds, Hold{Subject: "pod/" + r.Namespace + "/" + r.Name, Reason: r.Reason, Message: r.Message, Since: r.Since, Until: r.Until})
		}
	}
	for _, v := range p.Volumes {
		if v.Verdict != Ignore {
			holds = append(holds, Hold{Subject: v.subject(), Reason: v.Reason, Message: v.Message, Since: v.Since, Until: v.Until})
		}
	}
	return holds
}

func (v VolumeRow) subject() string {
	if v.Attachment != "" {
		return "volumeattachment/" + v.Attachment
	}
	return "volume/" + v.Volume
}

// String returns the plan as text, a line for each thing.
func (p Plan) String() string {
	var b strings.Builder
	if p.Reason != "" {
		fmt.Fprintf(&b, "nothing (%s)\n", p.Reason)
	}
	if p.Fence != nil {
		fmt.Fprintf(&b, "cordon node %s\n", p.Node)
	}
	for _, r := range p.Rows {
		fmt.Fprintln(&b, r)
	}
	switch {
	case p.Over():
		fmt.Fprintf(&b, "%s\n", p.Outcome)
	case p.NextCheck.IsZero():
		b.WriteString("until something changes\n")
	default:
		fmt.Fprintf(&b, "until something changes, or %s\n", formatTime(p.NextCheck))
	}
	return b.String()
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
