// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// progress prints the progress: as a live table on a terminal, and as lines otherwise. It is safe
// for several goroutines.
type progress struct {
	w       *world
	verbose bool
	live    bool
	height  int // the height of the terminal
	width   int
	began   time.Time
	looked  string // the version of the control cluster at the last look

	mu     sync.Mutex
	out    io.Writer
	drawn  int // the number of table lines on the screen
	phases map[string]v1alpha1.MachinePhase
	sizes  map[string]string
	failed int
	holds  map[string]string  // the holds of deployments, by key
	notes  []controllers.Note // notes of the controllers without errors
}

func newProgress(w *world, out io.Writer, verbose bool) *progress {
	p := &progress{w: w, out: out, verbose: verbose, began: w.clock.Now(), phases: map[string]v1alpha1.MachinePhase{}, sizes: map[string]string{}, holds: map[string]string{}}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor fits
		width, height, err := term.GetSize(int(f.Fd())) //nolint:gosec // as above
		p.live, p.width, p.height = err == nil && width > 40 && height > 10, width, height
	}
	return p
}

// line prints a line with the time of the clock of the demo.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(text)
}

// headline prints the title of a chapter.
func (p *progress) headline(title string) { p.line("== " + title) }

func (p *progress) print(text string) {
	p.erase()
	_, _ = fmt.Fprintf(p.out, "%6.1fs  %s\n", p.w.clock.Since(p.began).Seconds(), text)
}

// erase removes the table from the screen.
func (p *progress) erase() {
	if p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// decision receives the notes of the controllers.
func (p *progress) decision(n controllers.Note) {
	p.mu.Lock()
	if n.Err != nil {
		p.failed++
	} else {
		p.notes = append(p.notes, n)
		if n.Kind == "machinedeployment" {
			_, p.holds[n.Key], _ = strings.Cut(n.Text, "; ")
		}
	}
	p.mu.Unlock()
	switch {
	case !p.verbose:
	case n.Err != nil:
		p.line(fmt.Sprintf("%s %s: error: %s", n.Kind, n.Key, oneLine(n.Err)))
	case n.Acts:
		p.line(fmt.Sprintf("%s %s: %s", n.Kind, n.Key, n.Text))
	}
}

// waits returns the holds of the last decision about a deployment.
func (p *progress) waits(d *v1alpha1.MachineDeployment) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holds[d.Namespace+"/"+d.Name]
}

// noteCount returns the number of notes.
func (p *progress) noteCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.notes)
}

// notesSince returns the notes from an index on.
func (p *progress) notesSince(from int) []controllers.Note {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes[from:])
}

// errors returns the number of failed passes.
func (p *progress) errors() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// watch prints changes of machines until the context ends. The returned function waits for that.
func (p *progress) watch(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			p.look(ctx)
			select {
			case <-ctx.Done():
				p.mu.Lock()
				p.erase()
				p.mu.Unlock()
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { <-done }
}

// look prints what has changed.
func (p *progress) look(ctx context.Context) {
	version := p.w.version()
	if version == p.looked {
		return
	}
	api := p.w.machines.MachineV1alpha1()
	machines, err := api.Machines(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil { // an injected fault: the next look repeats it
		return
	}
	sets, err := api.MachineSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	slices.SortFunc(machines.Items, func(a, b v1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sets.Items, func(a, b v1alpha1.MachineSet) int { return cmp.Compare(a.Name, b.Name) })
	p.looked = version
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.draw(machines.Items, sets.Items)
		return
	}
	p.changes(machines.Items, sets.Items)
}

// changes prints a line for every changed machine and set.
func (p *progress) changes(machines []v1alpha1.Machine, sets []v1alpha1.MachineSet) {
	for _, s := range sets {
		if size := setSize(s); p.sizes[s.Name] != size {
			p.sizes[s.Name] = size
			p.print(fmt.Sprintf("machine set %s: %s", s.Name, size))
		}
	}
	seen := map[string]bool{}
	for _, m := range machines {
		seen[m.Name] = true
		old, known := p.phases[m.Name]
		phase := m.Status.CurrentStatus.Phase
		if known && old == phase {
			continue
		}
		p.phases[m.Name] = phase
		p.print(fmt.Sprintf("machine %s: %s", m.Name, describe(m)))
	}
	for name := range p.phases {
		if !seen[name] {
			delete(p.phases, name)
			p.print(fmt.Sprintf("machine %s: deleted", name))
		}
	}
}

func setSize(s v1alpha1.MachineSet) string {
	return fmt.Sprintf("%d desired, %d current, %d available", s.Spec.Replicas, s.Status.Replicas, s.Status.AvailableReplicas)
}

func describe(m v1alpha1.Machine) string {
	text := cmp.Or(string(m.Status.CurrentStatus.Phase), "new")
	if op := m.Status.LastOperation; op.Description != "" {
		text += " (" + oneLineOf(op.Description) + ")"
	}
	return text
}

func oneLineOf(text string) string { return strings.Join(strings.Fields(text), " ") }

// draw prints the table.
func (p *progress) draw(machines []v1alpha1.Machine, sets []v1alpha1.MachineSet) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tCLASS\tPHASE\tLAST OPERATION")
	for _, s := range sets {
		_, _ = fmt.Fprintf(table, "%s\t%s\t\t%s\n", s.Name, s.Spec.Template.Spec.Class.Name, setSize(s))
	}
	for _, m := range machines {
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", m.Name, m.Spec.Class.Name,
			cmp.Or(string(m.Status.CurrentStatus.Phase), "new"), oneLineOf(m.Status.LastOperation.Description))
	}
	_ = table.Flush()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if most := p.height - 3; len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("… and %d more", len(lines)-most))
	}
	p.erase()
	for _, line := range lines {
		if r := []rune(line); len(r) >= p.width {
			line = string(r[:p.width-1])
		}
		_, _ = fmt.Fprintln(p.out, line)
	}
	p.drawn = len(lines)
}
