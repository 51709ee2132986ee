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
	// pattern draws the pattern that fills its areas. Nil fills them with the color of the set.
	pattern func(p *picture, color string)
}

// available and the constants behind it are the names of the states.
const available, ready, updating, pending, failed, terminating = "available", "ready", "updating", "pending", "failed", "terminating"

// states are in the order of the stack. Available machines are at the bottom, so that they can be
// compared with the minimum. The whole stack can be compared with the maximum.
var states = []state{
	{available, nil}, {ready, readyPattern}, {updating, updatingPattern}, {pending, pendingPattern}, {failed, failedPattern}, {terminating, terminatingPattern},
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
	heights := make([]map[string][]int, len(names)) // by set, then by state
	for i, f := range frames {
		for _, s := range f.Sets {
			of := &heights[slices.Index(names, s.Name)]
			if *of == nil {
				*of = map[string][]int{}
			}
			for state, n := range s.Machines {
				if (*of)[state] == nil {
					(*of)[state] = make([]int, len(frames))
				}
				(*of)[state][i] = n
			}
		}
	}
	for _, st := range states {
		for set := range names {
			if h := heights[set][st.name]; h != nil {
				areas = append(areas, area{set: set, state: st, heights: h})
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
