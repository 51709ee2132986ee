// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

// progress prints a line for each event, and a count below them at a terminal. Only one
// goroutine may use it.
type progress struct {
	out   io.Writer
	words words
	now   func() time.Time
	// screen shows a count below the lines. It is nil elsewhere than at a terminal.
	screen *explain.Screen

	total   int                     // pods to evict or delete
	gone    int                     // pods that are gone
	asked   map[string]drain.Action // last request by subject
	waiting map[string]bool
}

func (c command) newProgress(before drain.Decision) *progress {
	p := &progress{
		out: c.Out, words: c.words(), now: c.Clock.Now, screen: explain.Terminal(c.Out),
		asked: map[string]drain.Action{}, waiting: map[string]bool{},
	}
	for _, r := range before.Rows {
		if r.Action != drain.Ignore {
			p.total++
		}
	}
	return p
}

// Observe prints an event.
func (p *progress) Observe(e drain.Progress) {
	p.words.now = e.Time
	p.count(e)
	if text := p.text(e); text != "" {
		p.print(e.Time, text)
	}
	p.screen.Draw(p.status())
}

// line prints a line.
func (p *progress) line(text string) { p.print(p.now(), text) }

func (p *progress) print(at time.Time, text string) {
	p.screen.Draw("")
	_, _ = fmt.Fprintf(p.out, "%s %s\n", at.In(p.words.zone).Format("15:04:05"), text)
}

// count updates the count.
func (p *progress) count(e drain.Progress) {
	if !strings.HasPrefix(e.Subject, "pod/") {
		return
	}
	switch e.Type {
	case drain.ProgressGone:
		p.gone++
		delete(p.waiting, e.Subject)
	case drain.ProgressLeft:
		p.total--
		delete(p.waiting, e.Subject)
	case drain.ProgressWaiting:
		p.waiting[e.Subject] = e.Reason != drain.ReasonTerminating
	case drain.ProgressRequested:
		if e.Row != nil && e.Err == nil {
			p.asked[e.Subject] = e.Row.Action
			delete(p.waiting, e.Subject)
		}
	default:
	}
}

// text returns the line of an event, or "".
func (p *progress) text(e drain.Progress) string {
	name := strings.TrimPrefix(e.Subject, "pod/")
	switch e.Type {
	case drain.ProgressStarted:
		return fmt.Sprintf("draining node %s of %s", e.Node, cli.Plural(p.total, "pod"))
	case drain.ProgressCordoned, drain.ProgressUncordoned:
		done := strings.ToLower(string(e.Type))
		if e.Err != nil {
			return fmt.Sprintf("could not %s node %s: %s", strings.TrimSuffix(done, "ed"), e.Node, cli.OneLine(e.Err))
		}
		return done + " node " + e.Node
	case drain.ProgressRequested:
		return p.requested(e, name)
	case drain.ProgressWaiting:
		return p.waits(e, name)
	case drain.ProgressGone:
		if e.Row == nil {
			return "detached " + name
		}
		return cmp.Or(gone[p.asked[e.Subject]], "gone") + " " + name
	case drain.ProgressLeft:
		return fmt.Sprintf("left %s (%s)", name, reasonOf(e.Reason, e.Message))
	case drain.ProgressEscalated:
		return "escalates: " + cmp.Or(e.Message, string(e.Reason), e.Subject)
	default: // the command prints the end
		return ""
	}
}

// requested returns the line of a request that succeeded. A refused one is followed by a wait.
func (p *progress) requested(e drain.Progress, name string) string {
	if e.Row == nil || e.Err != nil {
		return ""
	}
	s := fmt.Sprintf("%s %s", asks[e.Row.Action], name)
	if e.Row.Reason != drain.ReasonEvict {
		s += fmt.Sprintf(" (%s)", e.Row.Reason)
	}
	return s
}

// asks and gone are what is said of a request, and of a pod after it.
var (
	asks = map[drain.Action]string{drain.Evict: "evicting", drain.Delete: "deleting", drain.ForceDelete: "force-deleting"}
	gone = map[drain.Action]string{drain.Evict: "evicted", drain.Delete: "deleted", drain.ForceDelete: "force-deleted"}
)

// waits returns what a pod waits for. The termination of a pod after its request is not printed.
func (p *progress) waits(e drain.Progress, name string) string {
	switch {
	case e.Reason == drain.ReasonTerminating && p.asked[e.Subject] != "":
		return ""
	case e.Row == nil:
		return "waiting for " + p.words.hold(machinist.Hold{Subject: name, Reason: e.Reason, Message: e.Message})
	default:
		return "waiting for " + p.words.row(*e.Row)
	}
}

// status returns the count.
func (p *progress) status() string {
	held := 0
	for _, w := range p.waiting {
		if w {
			held++
		}
	}
	total := max(p.total, p.gone+held)
	return fmt.Sprintf("%d of %s gone, %d held, %d in progress", p.gone, cli.Plural(total, "pod"), held, total-p.gone-held)
}
