// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
)

const (
	// longestSummary is how long a summary may be, in bytes: it fits in a condition.
	longestSummary = 1024
	// longestNames is how much of a part of it the names of pods may take.
	longestNames = 320
	// mostNames is how many names a part has.
	mostNames = 3
)

// Summary says in one line of at most 1 kB how far the drain is, what it waits for and
// since when, what comes next, and what is not known: fit for a condition or an event.
// Pods with the same reason are put together, those that need somebody's help first. Names
// are whole; what has no room is counted.
func (p Decision) Summary() string {
	head := clip(p.headline(), longestSummary/4)
	var tail []string
	if p.Next != "" && !p.Over() {
		tail = append(tail, p.nextRung())
	}
	if len(p.NotEvaluated) > 0 && (p.Reason == "" || !p.Over()) {
		tail = append(tail, clip(p.notEvaluated(), longestSummary/4))
	}
	room := longestSummary - len(head) - len("; 1000000 more")
	for _, part := range tail {
		room -= len("; ") + len(part)
	}
	parts, more := []string{head}, 0
	for _, part := range p.parts() {
		if text := part.String(); len("; ")+len(text) <= room {
			parts, room = append(parts, text), room-len("; ")-len(text)
			continue
		}
		more += part.count
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(append(parts, tail...), "; ")
}

// headline says how far the drain is.
func (p Decision) headline() string {
	left := 0
	for i := range p.Rows {
		if p.Rows[i].Verdict != Ignore || p.Rows[i].Reason == ReasonAbandoned {
			left++
		}
	}
	total := left + p.GoneSoFar
	switch {
	case p.Reason != "" && p.Over() && string(p.Reason) != string(p.Outcome):
		return sentence(fmt.Sprintf("%s (%s)", p.Outcome, p.Reason), words(p.Message))
	case p.Reason != "":
		return sentence(string(p.Reason), words(p.Message))
	case p.Outcome == Drained:
		return fmt.Sprintf("Drained: %s gone", count(p.GoneSoFar, "pod"))
	case p.Over():
		return fmt.Sprintf("%s with %d of %s left", p.Outcome, left, count(total, "pod"))
	case total == 0:
		return "no pods to wait for"
	default:
		return fmt.Sprintf("%d of %s gone", p.GoneSoFar, count(total, "pod"))
	}
}

// The ranks of what is told of pods.
const (
	stuckFirst = iota
	waiting
	moving
	volumesLater
	asked
)

// part is one of the things that a summary tells, and for how many pods.
type part struct {
	rank  int
	words string // such as "waits for budget shop/web (0 of 3 allowed)"
	one   string // the same for a single one, if it differs
	since time.Time
	count int
	names []string
	about bool // the words are about no pods
}

func (s *part) String() string {
	text := s.words
	if !s.about {
		text = fmt.Sprintf("%d %s", s.count, s.words)
		if s.count == 1 && s.one != "" {
			text = "1 " + s.one
		}
	}
	if !s.since.IsZero() {
		text += " since " + formatTime(s.since)
	}
	return text + s.list()
}

// list returns the first names, as long as there is room for whole ones.
func (s *part) list() string {
	var b strings.Builder
	shown := 0
	for _, name := range s.names[:min(len(s.names), mostNames)] {
		if b.Len()+len(name) > longestNames {
			break
		}
		if shown > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
		shown++
	}
	switch left := len(s.names) - shown; {
	case shown == 0:
		return ""
	case left > 0:
		return fmt.Sprintf(": %s and %d more", b.String(), left)
	default:
		return ": " + b.String()
	}
}

// kind is what pods have in common that are told of together.
type kind struct {
	rank  int
	words string
}

// parts returns what there is to tell between the headline and what comes next.
func (p Decision) parts() []*part {
	var parts []*part
	if p.Fence != nil && !p.Over() {
		parts = append(parts, &part{words: "the node is not fenced yet", about: true})
	}
	if p.Message != "" && p.Reason == "" {
		parts = append(parts, &part{words: clip(oneLine(p.Message), longestNames), about: true})
	}
	for _, g := range p.Gates {
		text := sentence("waits for "+g.Subject+" ("+string(g.Reason)+")", words(g.Message))
		parts = append(parts, &part{words: clip(text, longestNames), about: true, since: g.Since, count: 1})
	}
	groups := map[kind]*part{}
	for i := range p.Rows {
		row := &p.Rows[i]
		if row.Verdict != Ignore || row.Reason == ReasonAbandoned && p.Over() {
			p.describe(row).into(groups, row.pod(), row.Since)
		}
	}
	for _, v := range p.Volumes {
		if v.Verdict != Ignore || p.Over() && (v.Reason == ReasonTimedOut || v.Reason == ReasonAbandoned) {
			d := part{rank: volumesLater, words: "volumes (" + string(v.Reason) + ")", one: "volume (" + string(v.Reason) + ")"}
			d.into(groups, cmp.Or(v.Volume, v.Attachment), v.Since)
		}
	}
	sorted := make([]*part, 0, len(groups))
	for _, group := range groups {
		slices.Sort(group.names)
		sorted = append(sorted, group)
	}
	slices.SortFunc(sorted, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.count, a.count), cmp.Compare(a.words, b.words))
	})
	return append(parts, sorted...)
}

// into adds a pod or volume to those of the same kind.
func (s part) into(groups map[kind]*part, name string, since time.Time) {
	like := kind{s.rank, s.words}
	group := groups[like]
	if group == nil {
		group = &s
		groups[like] = group
	}
	group.count++
	group.names = append(group.names, name)
	if s.rank < asked {
		group.since = machinist.Earliest(group.since, since)
	}
}

// describe says in words what becomes of a pod, the same for all with the same reason.
func (p Decision) describe(row *Row) part {
	rank := waiting
	switch {
	case p.stuck(row):
		rank = stuckFirst
	case row.Verdict.strength() > 0:
		return part{rank: asked, words: "asked to go (" + string(row.Verdict) + ")"}
	case row.Reason == ReasonTerminating || row.Reason == ReasonWave || row.Reason == ReasonVolumeLimit:
		rank = moving
	}
	if len(row.Budgets) > 0 {
		if text := budgetsInWords(row); text != "" {
			return part{rank: rank, words: "wait for " + text, one: "waits for " + text}
		}
	}
	switch text := inWords[row.Reason]; {
	case text != "":
		return part{rank: rank, words: text}
	case row.Message != "" && len(row.Message) <= longestReason:
		return part{rank: rank, words: string(row.Reason) + " (" + oneLine(row.Message) + ")"}
	default:
		return part{rank: rank, words: string(row.Reason)}
	}
}

// longestReason bounds the messages that are repeated in a summary.
const longestReason = 120

// budgetsInWords says which budgets a pod waits for, and in short why.
func budgetsInWords(row *Row) string {
	b := row.Budgets[0]
	switch name := b.Namespace + "/" + b.Name; row.Reason {
	case ReasonBudget:
		if b.Allowed > 0 {
			return fmt.Sprintf("their turn with budget %s (allows %d, %s)", name, b.Allowed, b.pods())
		}
		return fmt.Sprintf("budget %s (allows %d, %s)", name, b.Allowed, b.pods())
	case ReasonBudgetNever:
		return fmt.Sprintf("budget %s, which never allows it (%s)", name, b.pods())
	case ReasonBudgets:
		return fmt.Sprintf("one of %d budgets to go, since the API server refuses several (%s ...)", len(row.Budgets), name)
	default:
		return ""
	}
}

// inWords are the reasons that read better as words, and need no message.
var inWords = map[machinist.Reason]string{
	ReasonUnmanaged: "unmanaged", ReasonLocalStorage: "with local storage", ReasonNoIdentity: "without identity",
	ReasonTerminating: "terminating", ReasonOverdue: "overdue", ReasonWave: "held for an earlier wave",
	ReasonHook: "held for a hook", ReasonUncordoned: "held without a fence", ReasonInvalidPolicy: "held by the policy",
	ReasonVolumeLimit: "held by the limit of volumes", ReasonBudget: "refused by a budget",
	ReasonThrottled: "throttled", ReasonNamespace: "in a namespace on its way out", ReasonDoNotDisrupt: "not to be disrupted",
	ReasonWaitCompleted: "expected to complete", ReasonForbidden: "that the client may not evict",
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
