// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// room is how wide a line of text may be.
const room = pictureWidth - plotLeft - 16

// head begins the picture, with what it is about.
func (c *chart) head() {
	height := number(c.height())
	c.begin("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", "0 0 "+strconv.Itoa(pictureWidth)+" "+height,
		"width", strconv.Itoa(pictureWidth), "height", height, "role", "img", "font-family", "sans-serif", "font-size", "12")
	c.words("title", "Roll-out of "+c.doc.Deployment)
	c.words("desc", c.doc.Change+". "+c.doc.ending())
	c.words("style", style)
	c.define(c.parts)
	c.empty("rect", "class", "paper", "width", "100%", "height", "100%", "fill", paper)
	c.words("text", fit(c.doc.Deployment, room*3/4), "class", "ink", "x", number(plotLeft), "y", "26", "fill", ink, "style", "font-size:16px;font-weight:600")
	c.words("text", fit(c.doc.Change, room), "class", "ink", "x", number(plotLeft), "y", "46", "fill", ink)
	colour, class := ink, "ink"
	if c.doc.Outcome != OutcomeComplete {
		colour, class = capRed, "cap-name"
	}
	c.words("text", fit(c.doc.ending(), room), "class", class, "x", number(plotLeft), "y", "64", "fill", colour)
}

// grid draws the axes.
func (c *chart) grid() {
	for _, n := range numberMarks(c.most, 8) {
		y := number(c.y(n))
		c.empty("path", "class", "grid", "d", "M"+number(plotLeft)+" "+y+"H"+number(plotRight), "stroke", grid)
		c.words("text", strconv.Itoa(n), "class", "faint", "x", number(plotLeft-8), "y", number(c.y(n)+4), "text-anchor", "end", "fill", faint)
	}
	for _, at := range timeMarks(c.last, 12) {
		x := number(c.xAt(at))
		c.empty("path", "class", "grid", "d", "M"+x+" "+number(c.bottom())+"v6", "stroke", grid)
		c.words("text", span(at), "class", "faint", "x", x, "y", number(c.bottom()+18), "text-anchor", "middle", "fill", faint)
	}
}

// areas draws the stack.
func (c *chart) areas() {
	below := make([]int, len(c.frames))
	for _, p := range c.parts {
		above := slices.Clone(below)
		for i, h := range p.heights {
			above[i] += h
		}
		c.begin("path", "class", "area", "d", c.steps(func(i int) int { return above[i] })+c.back(below), "fill", fillOf(p))
		c.words("title", c.nameOf(p))
		c.shut()
		below = above
	}
}

func (c *chart) nameOf(p part) string {
	name := c.names[p.set]
	return fmt.Sprintf("%s, %s (%s)", p.state.name, name, c.classes[name])
}

// bounds draws the lines that the stack stays under, and its available part over.
func (c *chart) bounds() {
	end := c.frames[len(c.frames)-1]
	lowest := 0.0 // where a name has room
	for _, line := range []struct {
		name, text, colour, dashes string
		of                         func(Frame) int
	}{
		{"cap", "at most %d", capRed, "8 4", func(f Frame) int { return f.Cap }},
		{"wanted", "%d wanted", ink, "2 4", func(f Frame) int { return f.Wanted }},
		{"floor", "at least %d available", floorGreen, "8 4", func(f Frame) int { return f.Floor }},
	} {
		c.empty("path", "id", line.name, "class", line.name, "d", c.steps(func(i int) int { return line.of(c.frames[i]) }),
			"fill", "none", "stroke", line.colour, "stroke-width", "2", "stroke-dasharray", line.dashes)
		y := max(c.y(line.of(end))+4, lowest)
		lowest = y + rowHeight - 1
		c.words("text", fmt.Sprintf(line.text, line.of(end)), "class", line.name+"-name", "x", number(plotRight+6), "y", number(y), "fill", line.colour)
	}
}

// events draws what happened from outside.
func (c *chart) events() {
	for _, m := range c.marks {
		x, y := number(c.xAt(m.at)), float64(headHeight+m.row*rowHeight)
		c.empty("path", "class", "event", "d", "M"+x+" "+number(y)+"V"+number(c.bottom()), "stroke", eventPink, "stroke-dasharray", "3 3")
		side, anchor := 4.0, "start"
		if m.left {
			side, anchor = -4, "end"
		}
		c.words("text", m.text, "class", "event-name", "x", number(c.xAt(m.at)+side), "y", number(y+9), "text-anchor", anchor, "fill", eventPink)
	}
}

func (c *chart) laneTop() float64 { return c.bottom() + 30 }

// lane draws what the roll-out waits for, and a tick for every time at which something was done.
func (c *chart) lane() {
	top := c.laneTop()
	c.words("text", "waits", "class", "faint", "x", number(plotLeft-8), "y", number(top+13), "text-anchor", "end", "fill", faint)
	frames := c.doc.Frames
	for i := 0; i < len(frames); {
		why, j := frames[i].why(), i+1
		for j < len(frames) && frames[j].why() == why {
			j++
		}
		left, right := c.x(frames[i]), float64(plotRight)
		if j < len(frames) {
			right = c.x(frames[j])
		}
		if why != "" && right > left {
			c.segment(left, right, frames[i])
		}
		i = j
	}
	tick := -1
	for _, f := range frames {
		if x := c.x(f); len(f.Done) > 0 && int(x) > tick {
			tick = int(x)
			c.begin("path", "class", "tick", "d", "M"+number(x)+" "+number(top+laneHeight)+"v6", "stroke", faint, "stroke-width", "2")
			c.words("title", span(f.After.Duration)+"\n"+strings.Join(shortened(f.Done, 12), "\n"))
			c.shut()
		}
	}
}

// segment draws one reason of the lane, with its name if there is room.
func (c *chart) segment(left, right float64, f Frame) {
	top := c.laneTop()
	c.begin("rect", "class", "why", "x", number(left), "y", number(top), "width", number(right-left), "height", strconv.Itoa(laneHeight),
		"fill", "#f6f8fa", "stroke", grid)
	var lines []string
	for _, h := range f.Holds {
		lines = append(lines, h.String())
	}
	c.words("title", strings.Join(shortened(lines, 12), "\n"))
	c.shut()
	if why := fitWords(reasonsOf(f.Holds), right-left-8); why != "" {
		c.words("text", why, "class", "ink", "x", number((left+right)/2), "y", number(top+13), "text-anchor", "middle", "fill", ink)
	}
}

// shortened returns the first lines, and how many there are more.
func shortened(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most-1]), fmt.Sprintf("and %d more", len(lines)-most+1))
}

func (c *chart) legendTop() float64 { return c.laneTop() + laneHeight + 24 }

func (c *chart) height() float64 {
	columns := c.columns()
	rows := (len(c.parts) + columns - 1) / columns
	return c.legendTop() + float64(rows*(rowHeight+4)) + 8
}

// columns is how many names of the legend stand side by side.
func (c *chart) columns() int {
	widest := 1.0
	for _, p := range c.parts {
		widest = max(widest, widthOf(c.nameOf(p))+swatch+16)
	}
	return max(1, min(4, int(room/widest)))
}

// swatch is what a colour of the legend takes.
const swatch = 20

// legend says which area is what.
func (c *chart) legend() {
	columns := c.columns()
	for i, p := range c.parts {
		x := float64(plotLeft + i%columns*(room/columns))
		y := c.legendTop() + float64(i/columns*(rowHeight+4))
		c.empty("rect", "x", number(x), "y", number(y), "width", "14", "height", "14", "fill", fillOf(p), "stroke", generation(p.set))
		c.words("text", fit(c.nameOf(p), room-swatch), "class", "ink", "x", number(x+swatch), "y", number(y+11), "fill", ink)
	}
}
