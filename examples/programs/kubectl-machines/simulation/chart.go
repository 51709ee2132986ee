// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/machinist-dev/machinist/deployment"
)

// Measures of a picture, in pixels.
const (
	pictureWidth = 1000
	plotLeft     = 80
	plotRight    = 824 // the names of the bounds are right of it
	plotHeight   = 320
	headHeight   = 98 // above the names of the events
	rowHeight    = 16
	laneHeight   = 18
	letter       = 6.6 // the average width of a letter
)

// chart is a rollout as a picture: machines over time, stacked by state and by set, with the bounds
// as lines.
type chart struct {
	picture
	doc     Document
	frames  []Frame // a subset of those of the document: see thinned
	names   []string
	classes map[string]string
	stack   []area
	marks   []mark
	rows    int           // number of rows of marks
	before  time.Duration // time between the left edge and the change
	last    time.Duration // time at the right edge
	top     int           // machines at the upper edge
}

// mark is the name of an event, in a row above the plot.
type mark struct {
	at   time.Duration
	text string
	row  int
	left bool // the name is left of its line, because it does not fit on the right
}

// picturize returns a rollout as an SVG document.
func picturize(doc Document) string {
	c := newChart(doc)
	c.drawHead()
	c.drawAxes()
	c.drawStack()
	c.drawBounds()
	c.drawEvents()
	c.drawHolds()
	c.drawLegend()
	c.end()
	return c.text.String()
}

func newChart(doc Document) *chart {
	c := &chart{doc: doc, last: time.Second}
	for _, f := range doc.Frames {
		c.last = max(c.last, f.After.Duration)
		c.top = max(c.top, f.Maximum, f.Minimum, machinesOf(f).All())
	}
	c.last += c.last / 30
	c.before = c.last / 30
	c.top += max(1, c.top/10)
	c.frames = thinned(doc.Frames, func(f Frame) int { return int(c.x(f)) })
	c.names, c.classes = setsOf(doc.Frames)
	c.stack = areasOf(c.frames, c.names)
	c.placeMarks()
	return c
}

// machinesOf returns the numbers of machines of all sets.
func machinesOf(f Frame) Machines {
	all := Machines{}
	for _, s := range f.Sets {
		for state, n := range s.Machines {
			all[state] += n
		}
	}
	return all
}

// placeMarks finds a row for each event, so that the names do not overlap.
func (c *chart) placeMarks() {
	var ends []float64 // the right end of the last name in each row
	stuck := false
	for _, f := range c.doc.Frames {
		texts := slices.Clone(f.Events)
		was := stuck
		if stuck = f.Decision.Reason == deployment.ReasonStuck; stuck && !was {
			texts = append(texts, string(deployment.ReasonStuck))
		}
		if len(texts) == 0 {
			continue
		}
		m := mark{at: f.After.Duration, text: strings.Join(texts, ", ")}
		line, width := c.xAt(m.at), widthOf(m.text)+12
		left := line
		if m.left = line+width > pictureWidth; m.left {
			left = line - width
		}
		m.row = slices.IndexFunc(ends, func(end float64) bool { return end <= left })
		if m.row < 0 {
			m.row, ends = len(ends), append(ends, 0)
		}
		ends[m.row] = left + width
		c.marks = append(c.marks, m)
	}
	c.rows = len(ends)
}

// widthOf returns the approximate width of a text.
func widthOf(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

// fit cuts a text to an approximate width.
func fit(text string, width float64) string {
	most := int(width / letter)
	if widthOf(text) <= width || most < 1 {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// bottom returns the lower edge of the plot.
func (c *chart) bottom() float64 { return float64(headHeight+c.rows*rowHeight) + plotHeight }

func (c *chart) x(f Frame) float64 {
	if f.Before {
		return plotLeft
	}
	return c.xAt(f.After.Duration)
}

func (c *chart) xAt(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(at+c.before)/float64(c.last+c.before)
}

func (c *chart) y(machines int) float64 {
	return c.bottom() - plotHeight*float64(machines)/float64(c.top)
}

// steps returns the path of a line that keeps its height from each frame to the next.
func (c *chart) steps(height func(i int) int) string {
	var b strings.Builder
	for i, f := range c.frames {
		switch {
		case i == 0:
			b.WriteString("M" + number(c.x(f)) + " " + number(c.y(height(i))))
		case height(i) != height(i-1):
			b.WriteString("H" + number(c.x(f)) + "V" + number(c.y(height(i))))
		}
	}
	b.WriteString("H" + number(plotRight))
	return b.String()
}

// back returns the continuation of a path to the left, along a line of these heights.
func (c *chart) back(heights []int) string {
	var b strings.Builder
	b.WriteString("V" + number(c.y(heights[len(heights)-1])))
	for i := len(heights) - 1; i > 0; i-- {
		if heights[i] != heights[i-1] {
			b.WriteString("H" + number(c.x(c.frames[i])) + "V" + number(c.y(heights[i-1])))
		}
	}
	b.WriteString("H" + number(plotLeft) + "Z")
	return b.String()
}

// timeSteps are the distances between the marks of a time axis.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 56 * day,
}

// numberSteps are the distances between the marks of an axis of machines.
var numberSteps = func() (steps []int) {
	for base := 1; base <= 100*maxMachines; base *= 10 {
		steps = append(steps, base, 2*base, 5*base)
	}
	return steps
}()

const day = 24 * time.Hour

// marksTo returns the marks of an axis from 0 to end: the first, and at most a number of others. The last
// one of the steps is long enough for that.
func marksTo[T int | time.Duration](end T, most int, steps []T) (marks []T) {
	for len(steps) > 1 && end/steps[0] > T(most) {
		steps = steps[1:]
	}
	for at := T(0); at <= end; at += steps[0] {
		marks = append(marks, at)
	}
	return marks
}

// span returns a duration as short text: 1h30m, 90ms, 0s.
func span(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
