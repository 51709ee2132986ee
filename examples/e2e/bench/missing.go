// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
)

// missing returns what was not measured and should have been, one phrase each: a
// target that nothing was held against is not met. CPU time is not among it.
func (r result) missing() []string {
	if len(r.rounds) == 0 {
		return []string{"anything"}
	}
	var out []string
	for i, one := range r.rounds {
		say := func(format string, args ...any) {
			out = append(out, fmt.Sprintf(format, args...)+fmt.Sprintf(" in round %d", i+1))
		}
		if n := len(one.machines); n == 0 || n < one.planned {
			say("%d of %d machines", one.planned-n, one.planned)
		}
		for _, step := range steps {
			if n := len(one.machines) - len((result{rounds: []round{one}}).times(step.from, step.to)); n > 0 {
				say("%s of %d of %d machines", step.title, n, len(one.machines))
			}
			if step.whole != nil && step.whole(one) <= 0 {
				say("%s of the whole", step.title)
			}
		}
		if n := len(one.machines) - one.written(); n > 0 {
			say("the writes of %d of %d machines", n, len(one.machines))
		}
	}
	return out
}

// written returns to how many machines the manager has written.
func (r *round) written() int {
	names := map[string]bool{}
	for _, q := range r.requests {
		if i := column(q); i >= 0 && i < reads && q.Resource == "machines" && q.Name != "" {
			names[q.Name] = true
		}
	}
	return len(names)
}

// unread returns in how many rounds it was not measured what the process takes. Of
// so few machines that their CPU time may be less than can be measured, only the memory
// tells.
func (r result) unread() int {
	n := 0
	for _, one := range r.rounds {
		if one.cpu <= 0 && (len(one.machines) >= few || one.peak <= 0) {
			n++
		}
	}
	return n
}
