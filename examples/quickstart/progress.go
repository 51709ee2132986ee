// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// progress prints the progress: as a tree that changes at a terminal, and as lines elsewhere. It is safe
// for several goroutines.
type progress struct {
	w       *world
	view    *explain.View
	verbose bool
	screen  *explain.Screen // nil elsewhere
	began   time.Time

	mu      sync.Mutex
	out     io.Writer
	looked  string // the version of the control cluster at the last look
	tree    string // on the screen
	failed  int
	holding map[string]string // the holds of the last decision, by kind and key
}

func newProgress(w *world, out io.Writer, verbose bool) *progress {
	return &progress{
		w: w, out: out, verbose: verbose, screen: explain.Terminal(out),
		began: w.clock.Now(), looked: w.control.ResourceVersion(), holding: map[string]string{},
	}
}

// legend prints what the demo shows and how to read it.
func (p *progress) legend(s settings) {
	text := fmt.Sprintf("A cluster, a cloud and the controllers, all in memory. Its clock is up to %g times as fast as yours, and stops while the program works.\n", s.speed)
	if p.screen != nil {
		text += "The tree: deployment, sets, machines, their Nodes, and the pods that a drain waits for. WAITS FOR: the object, the reason, and for how long.\n"
	} else {
		text += "Each line: seconds on that clock, machine, phase, and what the controller wrote about it. At a terminal this is a tree that changes.\n"
	}
	_, _ = io.WriteString(p.out, text)
}

// line prints a line with the time of the clock of the demo, after the changes before it.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes()
	p.print(p.w.clock.Now(), text)
}

func (p *progress) print(at time.Time, text string) {
	p.screen.Draw("")
	_, _ = fmt.Fprintf(p.out, "%6.1fs  %s\n", at.Sub(p.began).Seconds(), text)
	p.screen.Draw(p.tree)
}

// explain prints what an object waits for, as kubectl machines explain does.
func (p *progress) explain(ctx context.Context, subject string) {
	text, err := p.view.Explain(ctx, subject)
	if err != nil {
		text = err.Error()
	}
	p.line("kubectl machines explain " + subject)
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range strings.Lines(text) {
		p.print(p.w.clock.Now(), "   "+strings.TrimRight(l, "\n"))
	}
}

// decision receives the notes of the controllers.
func (p *progress) decision(n controllers.Note) {
	p.mu.Lock()
	if n.Err != nil {
		p.failed++
	} else {
		_, p.holding[n.Kind+"/"+n.Key], _ = strings.Cut(n.Text, "; ")
	}
	p.mu.Unlock()
	switch {
	case !p.verbose:
	case n.Err != nil:
		p.line(fmt.Sprintf("%s %s: error: %s", n.Kind, n.Key, oneLine(n.Err.Error())))
	case n.Acts:
		p.line(fmt.Sprintf("%s %s: %s", n.Kind, n.Key, n.Text))
	}
}

// waits returns the holds of the last decision about an object.
func (p *progress) waits(kind, key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holding[kind+"/"+key]
}

// watch prints changes until the context ends. The returned function waits for that.
func (p *progress) watch(ctx context.Context) (wait func(), err error) {
	p.view, err = explain.Live(ctx, explain.Clients{Machines: p.w.machines, Control: p.w.secrets, Target: p.w.nodes}, namespace)
	if err != nil {
		return nil, err
	}
	p.view.Now, p.view.Machines, p.began = p.w.clock.Now, p.w.policy, p.w.clock.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			p.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() {
		<-done
		p.view.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changes()
		p.screen.Draw("")
	}, nil
}

// look prints what has changed.
func (p *progress) look(ctx context.Context) {
	if p.screen == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changes()
		return
	}
	tree, err := p.view.Tree(ctx, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && tree != p.tree {
		p.tree = tree
		p.screen.Draw(tree)
	}
}

// changes prints a line for each change of a phase since the last look, in the order of time. At a terminal
// the tree shows them.
func (p *progress) changes() {
	history := p.w.control.HistorySince(p.looked)
	if len(history) == 0 || p.screen != nil {
		return
	}
	p.looked = history[len(history)-1].ResourceVersion
	for _, write := range history {
		before, _ := write.Before.(*v1alpha1.Machine)
		after, _ := write.After.(*v1alpha1.Machine)
		switch {
		case after == nil && before != nil:
			p.print(write.Time, fmt.Sprintf("machine %s: deleted", write.Name))
		case after != nil && (before == nil || said(before) != said(after)):
			p.print(write.Time, fmt.Sprintf("machine %s: %s", write.Name, said(after)))
		}
	}
}

// said returns the phase of a machine and, if it waits or has failed, its last operation.
func said(m *v1alpha1.Machine) string {
	phase, op := m.Status.CurrentStatus.Phase, m.Status.LastOperation
	text := cmp.Or(string(phase), "new")
	if op.Description != "" && (op.State == v1alpha1.MachineStateFailed || phase == v1alpha1.MachineTerminating || phase == v1alpha1.MachineUnknown) {
		text += ": " + oneLine(op.Description)
	}
	const most = 150
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

// table prints the result.
func (p *progress) table(f figures) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nMACHINES\tAT MOST\tAVAILABLE\tDRAINS\tREPLACED\tVMS LEFT\tWRITES\tREPEATED")
	_, _ = fmt.Fprintf(table, "%d\t%d\tat least %d\t%d\t%d\t%d\t%d\t%d\n", f.Machines, f.MostAlive, f.FewestAvailable, f.drains, f.replaced, f.left, f.writes, p.failed)
	return table.Flush()
}
