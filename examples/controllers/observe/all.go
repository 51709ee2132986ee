// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

// All returns an observer that calls each of the observers in order. Nil observers are skipped.
func All(observers ...runner.Observer) runner.Observer {
	var all fanOut
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// fanOut is the observer that All returns.
type fanOut []runner.Observer

// Observe implements [runner.Observer].
func (s fanOut) Observe(e drain.Progress) {
	for _, o := range s {
		o.Observe(e)
	}
}

// observerFunc is a function that implements [runner.Observer].
type observerFunc func(drain.Progress)

// Observe implements [runner.Observer].
func (f observerFunc) Observe(e drain.Progress) { f(e) }

// isWarning reports whether an event is a warning: a request was refused, a pod or volume
// was left behind, or force was used.
func isWarning(e drain.Progress) bool {
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

// ofBudget reports whether a reason is a PodDisruptionBudget that blocks the eviction.
func ofBudget(reason machinist.Reason) bool {
	return reason == drain.ReasonBudget || reason == drain.ReasonBudgetNever || reason == drain.ReasonBudgets
}
