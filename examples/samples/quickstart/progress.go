// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

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

	mu     sync.Mutex
	out    io.Writer
	looked string // the version of the control cluster at the last look
	tree   string // on the screen
	failed int
}

func newProgress(w *world, out io.Writer, verbose bool) *progress {
	return &progress{
		w: w, out: out, verbose: verbose, screen: explain.Terminal(out),
		began: w.clock.Now(), looked: w.control.ResourceVersion(),
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
	r, err := p.view.Explain(ctx, subject)
	text := r.String()
	if err != nil {
		text = err.Error()
	}
	text = "kubectl machines explain " + subject + "\n" + strings.TrimSpace(text)
	p.line(strings.ReplaceAll(text, "\n", "\n            "))
}

// decision receives the notes of the controllers.
func (p *progress) decision(n controllers.Note) {
	if n.Err != nil {
		p.mu.Lock()
		p.failed++
		p.mu.Unlock()
	}
	switch {
	case !p.verbose:
	case n.Err != nil:
		p.line(fmt.Sprintf("%s %s: error: %s", n.Kind, n.Key, oneLine(n.Err.Error())))
	case n.Acts:
		p.line(fmt.Sprintf("%s %s: %s", n.Kind, n.Key, n.Text))
	}
}

// watch prints changes until the context ends. The returned function waits for that.
func (p *progress) watch(ctx context.Context) (wait func(), err error) {
	p.view, err = explain.Live(ctx, explain.Clients{Machines: p.w.machines, Control: p.w.secrets, Target: p.w.nodes}, namespace)
	if err != nil {
		return nil, err
	}
	p.view.Now, p.view.Machines, p.view.Assumed, p.began = p.w.clock.Now, p.w.policy, false, p.w.clock.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.view.Follow(ctx, clock.RealClock{}, 50*time.Millisecond, func() (bool, time.Time, error) { // until the context ends
			p.look(ctx)
			return false, time.Now().Add(time.Second), nil // also for its ages
		})
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
	r, err := p.view.Tree(ctx, "")
	tree := r.String()
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
	numbers := fmt.Sprintf("%d,%d,at least %d,%d,%d,%d,%d,%d", f.Machines, f.MostAlive, f.FewestAvailable, f.drains, f.replaced, f.left, f.writes, p.failed)
	header := []string{"MACHINES", "AT MOST", "AVAILABLE", "DRAINS", "REPLACED", "VMS LEFT", "WRITES", "REPEATED"}
	_, err := fmt.Fprint(p.out, "\n", explain.Table([][]string{header, strings.Split(numbers, ",")}))
	return err
}
