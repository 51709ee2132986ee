// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
)

// missing returns what was not measured and should have been, one phrase each: a target that nothing
// was held against is not met. CPU time is not among it.
func (r result) missing() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(r.phases) == 0 {
		return []string{"anything"}
	}
	if n := len(r.machines); n == 0 || n < r.planned {
		say("%d of %d machines", r.planned-n, r.planned)
	}
	for _, step := range steps {
		if n := len(r.machines) - len(r.times(step.from, step.to)); n > 0 {
			say("%s of %d of %d machines", step.title, n, len(r.machines))
		}
	}
	if n := len(r.machines) - r.written(); n > 0 {
		say("the writes of %d of %d machines", n, len(r.machines))
	}
	if !r.idle.ended.IsZero() && len(r.restart.requests) == 0 {
		say("the requests of a manager that starts")
	}
	for _, p := range r.phases {
		if len(p.requests) < p.machines {
			say("the requests of %s, of which there are %d", p.name, len(p.requests))
		}
		if p.wall <= 0 {
			say("the time of %s", p.name)
		}
		if all := p.writes.sum(); p.floor <= 0 || !maps.Equal(p.played, p.writes) || all < p.machines {
			say("the floor of %s, with %d of %d writes", p.name, p.played.sum(), all)
		}
	}
	return out
}

// written returns to how many machines the manager has written.
func (r result) written() int {
	names := map[string]bool{}
	for _, q := range r.requests {
		if i := column(q); i >= 0 && i < reads && q.Resource == "machines" && q.Name != "" {
			names[q.Name] = true
		}
	}
	return len(names)
}

// unread returns of how many phases it was not measured how much CPU time they took.
func (r result) unread() int {
	n := 0
	for _, p := range r.phases {
		if p.cpu <= 0 {
			n++
		}
	}
	return n
}
