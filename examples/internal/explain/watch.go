// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// Screen draws a text at the end of a terminal again and again. It is not safe for concurrent use.
type Screen struct {
	// Out is the terminal. Required.
	Out io.Writer
	// Size returns its width and height. Zero or nil means no limit.
	Size func() (width, height int)

	drawn int // the number of lines on the screen
}

// Terminal returns the screen of a terminal, or nil if out is none.
func Terminal(out io.Writer) *Screen {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor is small
		return nil
	}
	return &Screen{Out: out, Size: func() (width, height int) {
		width, height, _ = term.GetSize(int(f.Fd())) //nolint:gosec,errcheck // as above; without a size there is no limit
		return width, height
	}}
}

// Draw replaces the last text. Lines that are too long, and lines at the end of one that is too high, are
// left out, and a mark says so. A nil Screen and one without Out draw nothing.
func (s *Screen) Draw(text string) {
	if s == nil || s.Out == nil {
		return
	}
	var lines []string
	if text != "" {
		lines = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	width, height := 0, 0
	if s.Size != nil {
		width, height = s.Size()
	}
	if most := height - 1; most > 0 && len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("… and %d more lines", len(lines)-most+1))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.drawn)
	}
	for _, line := range lines {
		if r := []rune(line); width > 1 && len(r) >= width {
			line = string(r[:width-2]) + "…"
		}
		b.WriteString(line + "\n")
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.Out, b.String())
}

// Follow calls look, and again after each change of an object and at the time that it returned, unless that is
// zero. A pause is between two calls. It returns when look is done or fails, the context ends, or the right to
// read a resource is lost. Call it once at a time.
func (v *View) Follow(ctx context.Context, c clock.Clock, pause time.Duration, look func() (done bool, again time.Time, err error)) error {
	for {
		select {
		case <-v.changed: // look sees it
		default:
		}
		done, again, err := look()
		if err == nil && !done {
			err = v.wait(ctx, c, pause, again)
		}
		if err != nil || done {
			return err
		}
	}
}

// wait waits for a pause, and then for a change or a time.
func (v *View) wait(ctx context.Context, c clock.Clock, pause time.Duration, again time.Time) error {
	changed, due := v.changed, (<-chan time.Time)(nil)
	if !again.IsZero() {
		due = c.After(max(time.Second, pause, again.Sub(c.Now())))
	}
	var paused <-chan time.Time
	if pause > 0 {
		changed, paused = nil, c.After(pause)
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-v.running.Done():
			return context.Cause(v.running) //nolint:contextcheck // that of Live
		case <-paused:
			changed = v.changed
		case <-changed:
			return nil
		case <-due:
			return nil
		}
	}
}
