// SPDX-License-Identifier: Apache-2.0

package simulation

import "slices"

// area is the machines of one set in one state, as the picture stacks them.
type area struct {
	set     int // index in the names of the sets
	state   state
	heights []int // machines, for each frame
}

// state is a state of machines.
type state struct {
	name string
	of   func(Machines) int
	// pattern draws the pattern that fills its areas. Nil fills them with the color of the set.
	pattern func(p *picture, color string)
}

// states are in the order of the stack. Available machines are at the bottom, so that they can be
// compared with the minimum. The whole stack can be compared with the maximum.
var states = []state{
	{"available", func(m Machines) int { return m.Available }, nil},
	{"ready", func(m Machines) int { return m.Ready }, readyPattern},
	{"updating", func(m Machines) int { return m.Updating }, updatingPattern},
	{"pending", func(m Machines) int { return m.Pending }, pendingPattern},
	{"failed", func(m Machines) int { return m.Failed }, failedPattern},
	{"terminating", func(m Machines) int { return m.Terminating }, terminatingPattern},
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
func areasOf(frames []Frame, names []string) []area {
	heights := make([][]int, len(states)*len(names)) // by state, then by set
	for i, f := range frames {
		for _, s := range f.Sets {
			for k, st := range states {
				n := st.of(s.Machines)
				at := k*len(names) + slices.Index(names, s.Name)
				if heights[at] == nil && n > 0 {
					heights[at] = make([]int, len(frames))
				}
				if n > 0 {
					heights[at][i] = n
				}
			}
		}
	}
	var areas []area
	for at, h := range heights {
		if h != nil {
			areas = append(areas, area{set: at % len(names), state: states[at/len(names)], heights: h})
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
		keep := []int{i, j - 1, i, i}
		for k := i; k < j; k++ {
			if f, worst := frames[k], frames[keep[2]]; f.Available-f.Minimum < worst.Available-worst.Minimum {
				keep[2] = k
			}
			if f, worst := frames[k], frames[keep[3]]; f.Total-f.Maximum > worst.Total-worst.Maximum {
				keep[3] = k
			}
		}
		slices.Sort(keep)
		for _, k := range slices.Compact(keep) {
			out = append(out, frames[k])
		}
		i = j
	}
	return out
}
