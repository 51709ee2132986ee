// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A loop has the time of the next decision of a controller.
type loop struct {
	due time.Time // zero if only a change wakes it
}

func (l *loop) isDue(now time.Time) bool { return !l.due.IsZero() && !l.due.After(now) }

// by makes a controller decide again at the given time at the latest.
func (l *loop) by(at time.Time) {
	if !at.IsZero() && (l.due.IsZero() || at.Before(l.due)) {
		l.due = at
	}
}

var noTime time.Time

// again is the time to the next decision of a controller with a stale cache or a failed write.
const again = time.Second

var (
	errCrash   = errors.New("the process ended")
	errRefused = apierrors.NewTooManyRequestsError("refused by the model")
	errTimeout = apierrors.NewTimeoutError("the answer was lost", 0)
)

// call makes a write of a controller, with the outcome of the model.
func (w *World) call(by, verb string, kind string, name string, write func() error) error {
	outcome := Done
	if w.model.Call != nil {
		outcome = w.model.Call(by, verb, kind, name)
	}
	switch outcome {
	case Refused:
		w.say("%s: %s %s %s is refused", by, verb, kind, name)
		return errRefused
	case AnswerLost:
		w.say("%s: the answer to %s %s %s is lost", by, verb, kind, name)
		_ = write()
		return errTimeout
	case CrashBefore:
		w.say("%s crashes before %s %s %s", by, verb, kind, name)
		return errCrash
	case CrashAfter:
		w.say("%s crashes after %s %s %s", by, verb, kind, name)
		_ = write()
		return errCrash
	default:
		return write()
	}
}

// troubled reports whether caches may lag, turns may be missed or calls may fail.
func (m Model) troubled() bool { return m.Lag != nil || m.Idle != nil || m.Call != nil }

// misses reports whether a controller misses its turn.
func (w *World) misses(controller string, l *loop) bool {
	if w.model.Idle == nil || !w.model.Idle(controller) {
		return false
	}
	l.due = w.now.Add(again)
	return true
}

// look advances a cache, and reports whether it is still stale.
func (w *World) look(controller string, f *follower) bool {
	if f == nil {
		return false
	}
	return f.advance(func(k string) int { return w.model.Lag(controller, k) })
}
