// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
)

// area is the machines of one set in one state, as the picture stacks them.
type area struct {
	set     int // index in the names of the sets
	state   state
	heights []int // machines, for each frame
}

// state is a state of machines.
type state struct {
	name string
	// tint is the opacity of the background of its pattern, which has lines or dots. Without it, areas have
	// the color of the set.
	tint, lines string
	dots        []string
}

// available and the constants behind it are the names of the states.
const available, ready, updating, pending, failed, terminating = "available", "ready", "updating", "pending", "failed", "terminating"

// states are in the order of the stack. Available machines are at the bottom, so that they can be
// compared with the minimum. The whole stack can be compared with the maximum.
var states = []state{
	{name: available},
	{name: ready, tint: "0.6"},
	{name: updating, tint: "0.3", lines: "M0 2H8M0 6H8"},
	{name: pending, tint: "0.15", lines: "M-2 2L2 -2M0 8L8 0M6 10L10 6"},
	{name: failed, tint: "0.75", lines: "M0 0L8 8M8 0L0 8"},
	{name: terminating, tint: "0.15", dots: []string{"2", "6"}},
}

// setsOf returns the names of the sets of all frames, in the order of their creation, and the last
// class of each.
func setsOf(frames []Frame) (names []string, classes map[string]string) {
	classes = map[string]string{}
	for _, f := range frames {
		for _, s := range f.Sets {
			if _, known := classes[s.Name]; !known {
				names = append(names, s.Name)
			}
			classes[s.Name] = s.Class
		}
	}
	return names, classes
}

// areasOf returns the areas that are not always empty, from the bottom.
func areasOf(frames []Frame, names []string) (areas []area) {
	for _, st := range states {
		for set, name := range names {
			a := area{set: set, state: st, heights: make([]int, len(frames))}
			for i, f := range frames {
				for _, s := range f.Sets {
					if s.Name == name {
						a.heights[i] = s.Machines[st.name]
					}
				}
			}
			if slices.Max(a.heights) > 0 {
				areas = append(areas, a)
			}
		}
	}
	return areas
}

// thinned returns at most four frames for each column of a picture: the first, the last, the one
// closest to the minimum, and the one closest to the maximum. So each violation of a bound is
// drawn.
func thinned(frames []Frame, column func(Frame) int) []Frame {
	var out []Frame
	for i := 0; i < len(frames); {
		j := i + 1
		for j < len(frames) && column(frames[j]) == column(frames[i]) {
			j++
		}
		least := slices.MinFunc(frames[i:j], func(a, b Frame) int { return (a.Available - a.Minimum) - (b.Available - b.Minimum) })
		most := slices.MaxFunc(frames[i:j], func(a, b Frame) int { return (a.Total - a.Maximum) - (b.Total - b.Maximum) })
		for k, f := range frames[i:j] {
			if k == 0 || k == j-i-1 || f.After == least.After || f.After == most.After {
				out = append(out, f)
			}
		}
		i = j
	}
	return out
}

// The colors are readable on the paper.
const (
	paper        = "#ffffff"
	ink          = "#1f2328"
	faint        = "#8c959f"
	grid         = "#d0d7de"
	maximumRed   = "#cf222e"
	minimumGreen = "#1a7f37"
	eventPink    = "#bf3989"
)

// setColors are the colors of the sets.
var setColors = []string{"#8590a3", "#2f81f7", "#d9822b", "#8957e5", "#1b9e8a", "#b35900"}

func setColor(set int) string { return setColors[set%len(setColors)] }

// fillOf returns the fill of an area: the color of its set if its machines are available, and a
// pattern in that color otherwise.
func fillOf(a area) string {
	if a.state.tint == "" {
		return setColor(a.set)
	}
	return "url(#" + patternOf(a) + ")"
}

func patternOf(a area) string { return a.state.name + "-" + strconv.Itoa(a.set) }

// define writes the patterns of the areas.
func (p *picture) define(areas []area) {
	p.begin("defs")
	for _, a := range areas {
		if a.state.tint == "" {
			continue
		}
		color := setColor(a.set)
		background := color
		if a.state.name == failed {
			background = maximumRed
		}
		p.begin("pattern", "id", patternOf(a), "width", "8", "height", "8", "patternUnits", "userSpaceOnUse")
		p.empty("rect", "width", "8", "height", "8", "fill", background, "fill-opacity", a.state.tint)
		if a.state.lines != "" {
			p.empty("path", "d", a.state.lines, "stroke", color, "stroke-width", "1.6", "fill", "none")
		}
		for _, at := range a.state.dots {
			p.empty("circle", "cx", at, "cy", at, "r", "1.2", "fill", color)
		}
		p.end()
	}
	p.end()
}
