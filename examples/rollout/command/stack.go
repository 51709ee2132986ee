// SPDX-License-Identifier: Apache-2.0

package command

import "slices"

// A part of a picture's stack is the machines of one set that are in one state.
type part struct {
	set   int // its place in the order of sets
	state state
	// heights at every frame.
	heights []int
}

// A state of machines, as a picture tells them apart.
type state struct {
	name string
	of   func(Machines) int
	// pattern draws what its areas are filled with; nil is the colour of the set alone.
	pattern func(p *picture, colour string)
}

// states are stacked in this order, so that what is available stands at the bottom and can be
// compared with the floor, and all together with the cap.
var states = []state{
	{"available", func(m Machines) int { return m.Available }, nil},
	{"settling", func(m Machines) int { return m.Settling }, settling},
	{"updating", func(m Machines) int { return m.Updating }, updating},
	{"joining", func(m Machines) int { return m.Joining }, joining},
	{"failed", func(m Machines) int { return m.Failed }, failed},
	{"leaving", func(m Machines) int { return m.Leaving }, leaving},
}

// setsOf returns the names of all sets of the frames in the order in which they came, and the
// last class of each.
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

// stackOf returns the parts that are not empty all the time, from the bottom.
func stackOf(frames []Frame, names []string) []part {
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
	var parts []part
	for at, h := range heights {
		if h != nil {
			parts = append(parts, part{set: at % len(names), state: states[at/len(names)], heights: h})
		}
	}
	return parts
}

// thinned returns the frames of which at most four are left for each column of a picture: the
// first and the last in it, the one with the fewest available machines above the floor, and the
// one with the most machines under the cap. So no step outside of the bounds gets lost.
func thinned(frames []Frame, column func(Frame) int) []Frame {
	var out []Frame
	for i := 0; i < len(frames); {
		j := i + 1
		for j < len(frames) && column(frames[j]) == column(frames[i]) {
			j++
		}
		keep := []int{i, j - 1, i, i}
		for k := i; k < j; k++ {
			if f, worst := frames[k], frames[keep[2]]; f.Available-f.Floor < worst.Available-worst.Floor {
				keep[2] = k
			}
			if f, worst := frames[k], frames[keep[3]]; f.Total-f.Cap > worst.Total-worst.Cap {
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
