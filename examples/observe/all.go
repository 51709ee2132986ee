// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// All hands every event to each of the observers, in order. Nil ones are left out.
func All(observers ...runner.Observer) runner.Observer {
	var all several
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

type several []runner.Observer

// Observe implements [runner.Observer].
func (s several) Observe(e drain.Progress) {
	for _, o := range s {
		o.Observe(e)
	}
}

// calls makes an observer of a function.
type calls func(drain.Progress)

// Observe implements [runner.Observer].
func (f calls) Observe(e drain.Progress) { f(e) }

// worries reports whether an event is a warning: a request was refused, a pod or volume
// was left behind, or force was used.
func worries(e drain.Progress) bool {
	switch e.Type {
	case drain.ProgressLeft, drain.ProgressEscalated:
		return true
	case drain.ProgressEnded:
		return e.Outcome == drain.Proceeded || e.Outcome == drain.GaveUp
	case drain.ProgressWaiting:
		return e.Row != nil && (e.Row.Action == drain.Block || ofBudget(e.Reason))
	default:
		return e.Err != nil
	}
}

// ofBudget says whether a budget holds a pod, which is then not even asked to go.
func ofBudget(reason machinist.Reason) bool {
	return reason == drain.ReasonBudget || reason == drain.ReasonBudgetNever || reason == drain.ReasonBudgets
}
