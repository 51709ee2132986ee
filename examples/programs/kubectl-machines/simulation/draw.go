// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// textWidth is the maximum width of a line of text.
const textWidth = pictureWidth - plotLeft - 16

// drawHead begins the picture with its title, the change and the ending.
func (c *chart) drawHead() {
	height := number(c.height())
	c.begin("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", "0 0 "+strconv.Itoa(pictureWidth)+" "+height,
		"width", strconv.Itoa(pictureWidth), "height", height, "role", "img", "font-family", "system-ui, sans-serif", "font-size", "12")
	c.content("title", "Rollout of "+c.doc.Deployment)
	c.content("desc", c.doc.Change+". "+c.doc.ending())
	c.define(c.stack)
	c.empty("rect", "width", "100%", "height", "100%", "fill", paper)
	c.content("text", fit(c.doc.Deployment, textWidth*3/4), "x", number(plotLeft), "y", "26", "fill", ink, "font-size", "16", "font-weight", "600")
	c.content("text", fit(c.doc.Change, textWidth), "x", number(plotLeft), "y", "46", "fill", ink)
	color := ink
	if c.doc.Outcome != OutcomeComplete {
		color = maximumRed
	}
	c.content("text", fit(c.doc.ending(), textWidth), "x", number(plotLeft), "y", "64", "fill", color)
	c.content("text", fit(c.doc.bounds(), textWidth), "x", number(plotLeft), "y", "82", "fill", ink)
}

// drawAxes draws the axes with their titles.
func (c *chart) drawAxes() {
	x, y := number(plotLeft-52), number(c.bottom()-plotHeight/2)
	c.content("text", "number of machines", "x", x, "y", y, "text-anchor", "middle", "fill", ink, "transform", "rotate(-90 "+x+" "+y+")")
	c.content("text", "time since the change", "x", number((plotLeft+plotRight)/2), "y", number(c.bottom()+36), "text-anchor", "middle", "fill", ink)
	for _, n := range marksTo(c.top, 8, numberSteps) {
		y := number(c.y(n))
		c.empty("path", "d", "M"+number(plotLeft)+" "+y+"H"+number(plotRight), "stroke", grid)
		c.content("text", strconv.Itoa(n), "x", number(plotLeft-8), "y", number(c.y(n)+4), "text-anchor", "end", "fill", faint)
	}
	for _, at := range marksTo(c.last, 12, timeSteps) {
		x := number(c.xAt(at))
		c.empty("path", "d", "M"+x+" "+number(c.bottom())+"v6", "stroke", grid)
		c.content("text", span(at), "x", x, "y", number(c.bottom()+18), "text-anchor", "middle", "fill", faint)
	}
}

// drawStack draws the machines.
func (c *chart) drawStack() {
	below := make([]int, len(c.frames))
	for _, a := range c.stack {
		above := slices.Clone(below)
		for i, h := range a.heights {
			above[i] += h
		}
		c.begin("path", "class", "area", "d", c.steps(func(i int) int { return above[i] })+c.back(below), "fill", fillOf(a))
		c.content("title", c.nameOf(a))
		c.end()
		below = above
	}
}

func (c *chart) nameOf(a area) string {
	name := c.names[a.set]
	return fmt.Sprintf("%s, set %s (class %s)", a.state.name, name, c.classes[name])
}

// drawBounds draws the maximum, the replicas and the minimum.
func (c *chart) drawBounds() {
	end := c.frames[len(c.frames)-1]
	lowest := 0.0 // the y coordinate from which a name does not overlap the one before
	for _, line := range []struct {
		name, text, color, dashes string
		of                        func(Frame) int
	}{
		{"maximum", "at most %d machines", maximumRed, "8 4", func(f Frame) int { return f.Maximum }},
		{"replicas", "%d replicas", ink, "2 4", func(f Frame) int { return f.Replicas }},
		{"minimum", "at least %d available", minimumGreen, "8 4", func(f Frame) int { return f.Minimum }},
	} {
		c.empty("path", "id", line.name, "d", c.steps(func(i int) int { return line.of(c.frames[i]) }),
			"fill", "none", "stroke", line.color, "stroke-width", "2", "stroke-dasharray", line.dashes)
		y := max(c.y(line.of(end))+4, lowest)
		lowest = y + rowHeight - 1
		c.content("text", fmt.Sprintf(line.text, line.of(end)), "x", number(plotRight+6), "y", number(y), "fill", line.color)
	}
}

// drawEvents draws the events.
func (c *chart) drawEvents() {
	for _, m := range c.marks {
		x, y := number(c.xAt(m.at)), float64(headHeight+m.row*rowHeight)
		c.empty("path", "d", "M"+x+" "+number(y)+"V"+number(c.bottom()), "stroke", eventPink, "stroke-dasharray", "3 3")
		side, anchor := 4.0, "start"
		if m.left {
			side, anchor = -4, "end"
		}
		c.content("text", m.text, "x", number(c.xAt(m.at)+side), "y", number(y+9), "text-anchor", anchor, "fill", eventPink)
	}
}

// laneTop returns the upper edge of the lane of holds.
func (c *chart) laneTop() float64 { return c.bottom() + 50 }

// drawHolds draws a lane with what the rollout waits for, and a tick for each time with actions.
func (c *chart) drawHolds() {
	top := c.laneTop()
	c.content("text", "waits for", "x", number(plotLeft-8), "y", number(top+13), "text-anchor", "end", "fill", faint)
	frames := c.doc.Frames
	for i := 0; i < len(frames); {
		why, j := reasonsOf(frames[i].Decision.Holds), i+1
		for j < len(frames) && slices.Equal(reasonsOf(frames[j].Decision.Holds), why) {
			j++
		}
		left, right := c.x(frames[i]), float64(plotRight)
		if j < len(frames) {
			right = c.x(frames[j])
		}
		if len(why) > 0 && right > left {
			c.segment(left, right, frames[i])
		}
		i = j
	}
	tick := -1
	for _, f := range frames {
		if x := c.x(f); len(f.Decision.Actions) > 0 && int(x) > tick {
			tick = int(x)
			c.begin("path", "class", "tick", "d", "M"+number(x)+" "+number(top+laneHeight)+"v6", "stroke", faint, "stroke-width", "2")
			c.content("title", span(f.After.Duration)+"\n"+strings.Join(shortened(actionLines(f.Decision.Actions), 12), "\n"))
			c.end()
		}
	}
}

// segment draws a part of the lane, with the reasons if they fit.
func (c *chart) segment(left, right float64, f Frame) {
	top := c.laneTop()
	c.begin("rect", "x", number(left), "y", number(top), "width", number(right-left), "height", strconv.Itoa(laneHeight),
		"fill", "#f6f8fa", "stroke", grid)
	c.content("title", strings.Join(shortened(holdLines(f.Decision.Holds, c.doc.Start), 12), "\n"))
	c.end()
	if why := strings.Join(reasonsOf(f.Decision.Holds), ", "); right-left > 6*letter {
		c.content("text", fit(why, right-left-8), "x", number((left+right)/2), "y", number(top+13), "text-anchor", "middle", "fill", ink)
	}
}

// shortened returns at most a number of lines. The last one counts those that are left out.
func shortened(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most-1]), fmt.Sprintf("and %d more", len(lines)-most+1))
}

// legendTop returns the upper edge of the legend.
func (c *chart) legendTop() float64 { return c.laneTop() + laneHeight + 24 }

func (c *chart) height() float64 {
	rows := (len(c.stack) + legendColumns - 1) / legendColumns
	return c.legendTop() + float64(rows*(rowHeight+4)) + 8
}

// Measures of the legend: the number and the width of its columns, and the width of a color.
const (
	legendColumns = 2
	legendWidth   = textWidth / legendColumns
	swatch        = 20
)

// drawLegend draws the color and the name of each area.
func (c *chart) drawLegend() {
	for i, a := range c.stack {
		x := float64(plotLeft + i%legendColumns*legendWidth)
		y := c.legendTop() + float64(i/legendColumns*(rowHeight+4))
		c.empty("rect", "x", number(x), "y", number(y), "width", "14", "height", "14", "fill", fillOf(a), "stroke", setColor(a.set))
		c.content("text", fit(c.nameOf(a), legendWidth-swatch-16), "x", number(x+swatch), "y", number(y+11), "fill", ink)
	}
}
