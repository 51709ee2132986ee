// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// marked says whether the Node tells that it goes. By force, one that could not be
// told for a minute is not waited for.
func (l *logic) marked(node *corev1.Node) bool {
	if c := conditionOf(node.Status.Conditions, v1alpha1.NodeTerminationCondition); c != nil && c.Status == corev1.ConditionTrue {
		return true
	}
	return l.pressed()
}

// pressed says that the deletion has been forced for a minute: what could not be done
// by then is not waited for.
func (l *logic) pressed() bool {
	since, _ := l.noticed()
	return l.deletionDrain(nil).forced(l.now) && !l.now.Before(since.Add(forcedDrain))
}

// terminating is the condition that tells others why the Node goes. It is set
// while the phase still tells.
func (l *logic) terminating() corev1.NodeCondition {
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue,
		Reason: v1alpha1.NodeScaledDown, Message: "Machine Controller is scaling down machine",
		LastHeartbeatTime: metav1.NewTime(l.now), LastTransitionTime: metav1.NewTime(l.now),
	}
	if l.phase() == v1alpha1.MachineFailed {
		c.Reason, c.Message = v1alpha1.NodeUnhealthy, "Machine Controller is terminating failed machine"
	}
	return c
}

// vacate drains the Node, which includes that its volumes are detached, and by force
// declares them detached. It returns false when that is over, or was over before
// another controller stopped.
func (l *logic) vacate(node *corev1.Node) (Decision, bool) {
	a, before := l.deletionDrain(node), takeOver(l.m, node, l.now)
	since, over := l.in.Drain.of(a).over(a, l.now)
	if before.drained {
		since, over = l.m.Status.LastOperation.LastUpdateTime.Time, true
	}
	switch {
	case !over:
		return l.drain(node, a), true
	case !before.detached && (before.forced || a.unreachable() || a.forced(l.now)):
		return l.detach(node, since)
	default:
		return Decision{}, false
	}
}

// drain makes a round of draining, or waits for what the last one waits for.
func (l *logic) drain(node *corev1.Node, a DrainNode) Decision {
	due, next := l.roundDue(node, a)
	if due {
		return l.do(a, ReasonDraining, "")
	}
	round := l.in.Drain.of(a)
	next = machinist.Earliest(next, round.forceEnds(a, l.now))
	if len(round.Holds) > 0 {
		op, at := l.drainNews(round.Holds)
		if !at.IsZero() && !l.now.Before(at) {
			return l.recordOperation(ReasonDraining, op)
		}
		next = machinist.Earliest(next, at)
	}
	return l.drainWaits(a, next)
}

// tellAgain is for how long at least the machine tells the same of its drain, so
// that one that takes its usual time costs no further write.
const tellAgain = 30 * time.Second

// drainNews returns what the machine should tell of a drain that waits, and when:
// that it has begun, at once, unless only the Node itself is waited for, which takes
// a moment; what it waits for, when that has taken long. Zero means that this has
// been told.
func (l *logic) drainNews(holds []machinist.Hold) (v1alpha1.LastOperation, time.Time) {
	last := l.m.Status.LastOperation
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain)
	begun := last.Type == op.Type && last.State == op.State && strings.HasPrefix(last.Description, op.Description)
	onNode := func(h machinist.Hold) bool { return strings.HasPrefix(h.Subject, "node/") }
	switch {
	case begun:
	case len(holds) == 1 && onNode(holds[0]):
		since, _ := l.noticed()
		return op, since.Add(tellAgain)
	default:
		return op, l.now
	}
	op.Description += "; " + waitsFor(holds)
	if sameOperation(op, last) {
		return op, time.Time{}
	}
	return op, recorded.At(last.LastUpdateTime.Time, l.now).Add(tellAgain)
}

// waitsFor names the first holds and counts the others.
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
