// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// hasTerminating reports whether the Node has the condition Terminating. In a forced deletion the
// condition is not waited for longer than a minute.
func (l *logic) hasTerminating(node *corev1.Node) bool {
	if c := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodeTerminationCondition); c != nil && c.Status == corev1.ConditionTrue {
		return true
	}
	return l.forcedTooLong()
}

// forcedTooLong reports whether the deletion has been forced for a minute. Steps that failed until
// then are skipped.
func (l *logic) forcedTooLong() bool {
	end := l.forcedFrom()
	return !end.IsZero() && !l.now.Before(end)
}

// forcedFrom returns when the deletion has been forced for a minute. Zero means never.
func (l *logic) forcedFrom() time.Time {
	since, _ := l.deletionNoticed()
	force := l.deletionDrain(nil).forceAt()
	if force.IsZero() {
		return time.Time{}
	}
	return later(force, since.Add(forcedDrain))
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// terminating returns the condition Terminating of the Node. It is set before the phase
// Terminating, because its reason follows from the phase.
func (l *logic) terminating() corev1.NodeCondition {
	reason, message := v1alpha1.NodeScaledDown, "Machine Controller is scaling down machine"
	if l.phase() == v1alpha1.MachineFailed {
		reason, message = v1alpha1.NodeUnhealthy, "Machine Controller is terminating failed machine"
	}
	return facts.Condition(v1alpha1.NodeTerminationCondition, corev1.ConditionTrue, reason, message, l.now)
}

// emptyNode drains the Node and detaches its volumes. A forced drain deletes the VolumeAttachments
// instead. It returns false when both have ended, also under another controller before.
func (l *logic) emptyNode(node *corev1.Node) (Decision, bool) {
	a, before := l.deletionDrain(node), takeOver(l.m, node, l.now)
	since, over := l.in.Drain.of(a).endedAt(a, l.now)
	if before.drained {
		since, over = l.m.Status.LastOperation.LastUpdateTime.Time, true
	}
	switch {
	case !over:
		return l.deletionPass(node, a), true
	case !before.detached && (before.forced || a.unreachable() || a.forced(l.now)):
		return l.detach(node, since)
	default:
		return Decision{}, false
	}
}

// deletionPass makes a pass of the drain for a deletion, or waits.
func (l *logic) deletionPass(node *corev1.Node, a DrainNode) Decision {
	d := l.drain(node, a, "", func(waits string) v1alpha1.LastOperation {
		return l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain+"; "+waits)
	})
	if d.Action == nil {
		d.NextCheck = machinist.Earliest(d.NextCheck, l.in.Drain.of(a).forceEnds(a, l.now))
	}
	return d
}

// drain makes a pass of a drain, or waits for the holds of the last pass. news returns the
// operation for these holds.
func (l *logic) drain(node *corev1.Node, a DrainNode, message string, news func(waits string) v1alpha1.LastOperation) Decision {
	due, next := l.passDue(node, a)
	if due {
		return l.do(a, reasonDraining, message)
	}
	if holds := l.in.Drain.of(a).Holds; len(holds) > 0 {
		op := news(waitsFor(holds))
		at := l.reportDue(op, a.Started)
		if !at.IsZero() && !l.now.Before(at) {
			return l.recordOperation(reasonDraining, op)
		}
		next = machinist.Earliest(next, at)
	}
	return l.drainWaits(a, next)
}

// reportAfter is the minimum time between two reports of a drain in the last operation. A drain
// that takes less time causes no write.
const reportAfter = 30 * time.Second

// reportDue returns when to record an operation of a drain that began at started. Zero means that
// it is recorded.
func (l *logic) reportDue(op v1alpha1.LastOperation, started time.Time) time.Time {
	last := l.m.Status.LastOperation
	if sameOperation(op, last) {
		return time.Time{}
	}
	if at := last.LastUpdateTime.Time; at.After(started) && recorded.Known(at, l.now) {
		started = at
	}
	return started.Add(reportAfter)
}

// waitsFor returns a text with the first holds and the number of the others.
func waitsFor(holds []machinist.Hold) string {
	const shown = 3
	var names []string
	for _, h := range holds[:min(shown, len(holds))] {
		names = append(names, h.String())
	}
	text := "waits for " + strings.Join(names, "; ")
	if more := len(holds) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
