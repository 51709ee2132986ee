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
	// Plain means that Out is no terminal: each text follows the one before, after an empty line.
	Plain bool

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
	switch {
	case s.drawn == 0:
	case s.Plain:
		b.WriteString("\n")
	default:
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

// Watch draws the tree of subject each time that it differs, looked at once in a period, until the context
// ends. It returns nil then, or why there is no tree.
func (v *View) Watch(ctx context.Context, subject string, s *Screen, c clock.WithTicker, every time.Duration) error {
	ticker := c.NewTicker(max(every, time.Millisecond))
	defer ticker.Stop()
	last := ""
	for {
		text, err := v.Tree(ctx, subject)
		if err != nil {
			return err
		}
		if text != last {
			s.Draw(text)
			last = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}
