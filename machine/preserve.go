// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// preservation returns the next step of a machine that a user preserves, with or without a Node,
// and ends the preservation.
//
// First the end of the preservation is recorded, so that the MachineSet does not replace the
// machine. Last this record is removed. All other changes are made and reverted in between, so that
// a crash at any point has the same result. The recorded end does not change while the preservation
// lasts.
func (l *logic) preservation() Decision {
	value, known := facts.PreserveValue(l.m, l.in.Node.Node, l.in.Node.Looked, l.in.Node.NoTarget)
	if !known {
		return l.preservationUnknown()
	}
	keep, forget := facts.JudgePreservation(value, l.phase(), l.preservedUntil(), l.now)
	if keep {
		return l.preserve(value)
	}
	return l.stopPreserving(forget)
}

// preservedUntil returns the recorded end of the preservation, or zero.
func (l *logic) preservedUntil() time.Time {
	if end := l.m.Status.CurrentStatus.PreserveExpiryTime; end != nil {
		return end.Time
	}
	return time.Time{}
}

// preservationUnknown waits for the Node, whose annotations may preserve the machine, if the
// machine has a record of a preservation.
func (l *logic) preservationUnknown() Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil && facts.LastApplied(l.m) == "" &&
		!facts.IsPreserveValue(l.m.Annotations[v1alpha1.PreserveMachineAnnotationKey]) {
		return Decision{}
	}
	if l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return hold(machinist.Hold{
			Subject: l.nodeSubject(), Reason: ReasonNotObserved, Until: l.now.Add(time.Minute),
			Message: "the name of the node, which may have the preserve annotation, is not known",
		})
	}
	return l.notObserved(l.nodeSubject(), "its preserve annotation was not read")
}

// preserve begins or continues the preservation for a value of the annotation.
func (l *logic) preserve(value string) Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil {
		end := preserveEnd(l.now, l.p.PreserveTimeout)
		return l.record(reasonPreserved, "until "+end.UTC().Format(time.RFC3339), func(s *v1alpha1.MachineStatus) {
			s.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: end}
		})
	}
	if d := l.copyPreserveValue(false); d.Action != nil {
		return d
	}
	node := l.namedNode()
	if node == nil || l.aboutToRun(node) {
		return l.keepPreserved()
	}
	if changed := l.preservedNode(node); changed != nil {
		return l.writeNode(changed, "preserved", reasonPreserved)
	}
	return l.showPreserved(node, value)
}

// namedNode returns the Node in the label of the machine, or nil if there is none.
func (l *logic) namedNode() *corev1.Node {
	if l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return nil
	}
	return l.ownNode()
}

// aboutToRun reports whether the machine becomes Running next. Its Node is not drained then, even
// if the machine is Failed.
func (l *logic) aboutToRun(node *corev1.Node) bool {
	healthy, _ := judgeHealth(node.Status.Conditions, l.p.HealthConditions)
	return healthy && l.moves(reasonNodeReady)
}

// keepPreserved waits for the end of the preservation.
func (l *logic) keepPreserved() Decision {
	h := machinist.Hold{Subject: "machine/" + l.m.Name, Reason: reasonPreserved, Message: "without end"}
	if end := l.preservedUntil(); end.Before(noEnd) {
		h.Message, h.Until = "until "+end.UTC().Format(time.RFC3339), end
	}
	return hold(h)
}

// stopPreserving ends the preservation. With forget it removes the annotations that asked for it.
// If its record was lost, the marks on the Node show a preservation: its condition, which is
// removed last then, and its taint. The annotations for the autoscaler may be those of a rollout.
func (l *logic) stopPreserving(forget bool) Decision {
	active := l.m.Status.CurrentStatus.PreserveExpiryTime != nil
	if node := l.namedNode(); node != nil {
		stale := staleCondition(node, active)
		if active && stale {
			return l.writeCondition(l.stoppedCondition(), reasonPreservationStopped)
		}
		if changed := l.releasedNode(node, forget, active || stale); changed != nil {
			return l.writeNode(changed, "no longer preserved", reasonPreservationStopped)
		}
		if stale {
			return l.writeCondition(l.stoppedCondition(), reasonPreservationStopped)
		}
	}
	if d := l.copyPreserveValue(forget); d.Action != nil {
		return d
	}
	if !active {
		return Decision{}
	}
	return l.record(reasonPreservationStopped, "", func(s *v1alpha1.MachineStatus) { s.CurrentStatus.PreserveExpiryTime = nil })
}

// copyPreserveValue copies the value of the annotation on the Node to the machine, where it
// replaces the value of the machine. With forget it removes both.
func (l *logic) copyPreserveValue(forget bool) Decision {
	const request, applied = v1alpha1.PreserveMachineAnnotationKey, v1alpha1.LastAppliedNodePreserveValueAnnotationKey
	var says string
	drop := []string{request, applied}
	if !forget {
		node := l.namedNode()
		if node == nil {
			return Decision{}
		}
		var found bool
		if says, found = facts.NodePreserveValue(node); !found && facts.LastApplied(l.m) == "" {
			drop = []string{applied} // its value is empty
		}
	}
	has := func(key string) bool { _, found := l.m.Annotations[key]; return found }
	if says == "" && !slices.ContainsFunc(drop, has) || says != "" && facts.LastApplied(l.m) == says && !has(request) {
		return Decision{}
	}
	m := l.m.DeepCopy()
	for _, key := range drop {
		delete(m.Annotations, key)
	}
	if says == "" {
		return l.write(m, "no preserve annotation", reasonPreservationStopped)
	}
	m.Annotations = withKey(m.Annotations, applied, says)
	return l.write(m, "preserve annotation of the node: "+says, reasonPreserved)
}

// noEnd is the recorded end of a preservation without an end: the last second of the year 9999, the
// latest that all clients can read.
var noEnd = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// preserveEnd returns the end of a preservation that begins at start, in whole seconds, as the API
// server stores it. Zero or less means [noEnd].
func preserveEnd(start time.Time, lasts time.Duration) time.Time {
	if lasts <= 0 {
		return noEnd
	}
	return start.Add(lasts).Truncate(time.Second)
}
