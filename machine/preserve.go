// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// preservation keeps a machine for a user to look at, with or without a
// Node, and lets it go when that is over.
//
// It begins with the end being recorded, which keeps the set from replacing the
// machine, and ends with that record being removed; everything else is put in
// place, and taken back, in between. So a crash anywhere ends in the same place.
// The record is never moved while the preservation lasts.
func (l *logic) preservation() Decision {
	value, known := PreserveValue(l.m, l.in.Node)
	if !known {
		return l.preservationUnknown()
	}
	keep, forget := judgePreservation(value, l.phase(), l.preservedUntil(), l.now)
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

// preservationUnknown waits for what says whether the machine is preserved, if
// anything on the machine is about that.
func (l *logic) preservationUnknown() Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil && lastApplied(l.m) == "" &&
		!preserveValue(l.m.Annotations[v1alpha1.PreserveMachineAnnotationKey]) {
		return Decision{}
	}
	if l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return hold(machinist.Hold{
			Subject: l.nodeSubject(), Reason: ReasonNotObserved, Until: l.now.Add(time.Minute),
			Message: "the name of the node that speaks of preservation is not known",
		})
	}
	return l.notObserved(l.nodeSubject(), "what it says of preservation is not known")
}

// preserve begins the preservation that value asks for, and goes on with it.
func (l *logic) preserve(value string) Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil {
		end := preserveEnd(l.now, l.p.PreserveTimeout)
		return l.record(ReasonPreserved, "until "+end.UTC().Format(time.RFC3339), func(s *v1alpha1.MachineStatus) {
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
		return l.do(UpdateNode{Node: changed, What: "preserved"}, ReasonPreserved, "")
	}
	return l.showPreserved(node, value)
}

// namedNode returns the Node that the machine names, or nil if there is none.
func (l *logic) namedNode() *corev1.Node {
	if l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return nil
	}
	return l.ownNode()
}

// aboutToRun says whether the machine is about to run again, so that its Node need
// not be drained if it had failed.
func (l *logic) aboutToRun(node *corev1.Node) bool {
	healthy, _ := judgeHealth(node.Status.Conditions, l.p.HealthConditions)
	return healthy && l.moves(ReasonNodeReady)
}

// keepPreserved waits for the end of the preservation.
func (l *logic) keepPreserved() Decision {
	h := machinist.Hold{Subject: "machine/" + l.m.Name, Reason: ReasonPreserved, Message: "for ever"}
	if end := l.preservedUntil(); end.Before(noEnd) {
		h.Message, h.Until = "until "+end.UTC().Format(time.RFC3339), end
	}
	return hold(h)
}

// stopPreserving ends the preservation, and with forget takes back what asked for
// it. What a preservation has left on the Node whose record was lost is recognized
// by what only a preservation puts there: the condition, which therefore goes last
// then, and the taint. The annotations alone may be those of a roll-out.
func (l *logic) stopPreserving(forget bool) Decision {
	active := l.m.Status.CurrentStatus.PreserveExpiryTime != nil
	if node := l.namedNode(); node != nil {
		stale := staleCondition(node, active)
		if active && stale {
			return l.do(SetNodeCondition{NodeName: node.Name, Condition: l.stoppedCondition()}, ReasonPreservationStopped, "")
		}
		if changed := l.releasedNode(node, forget, active || stale); changed != nil {
			return l.do(UpdateNode{Node: changed, What: "no longer preserved"}, ReasonPreservationStopped, "")
		}
		if stale {
			return l.do(SetNodeCondition{NodeName: node.Name, Condition: l.stoppedCondition()}, ReasonPreservationStopped, "")
		}
	}
	if d := l.copyPreserveValue(forget); d.Action != nil {
		return d
	}
	if !active {
		return Decision{}
	}
	return l.record(ReasonPreservationStopped, "", func(s *v1alpha1.MachineStatus) { s.CurrentStatus.PreserveExpiryTime = nil })
}

// copyPreserveValue keeps on the machine what its Node says of preservation, which
// replaces what the machine says, or with forget nothing of either.
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
		if says, found = nodePreserveValue(l.in.Node); !found && lastApplied(l.m) == "" {
			drop = []string{applied} // which is empty, if it is there
		}
	}
	has := func(key string) bool { _, found := l.m.Annotations[key]; return found }
	if says == "" && !slices.ContainsFunc(drop, has) || says != "" && lastApplied(l.m) == says && !has(request) {
		return Decision{}
	}
	m := l.m.DeepCopy()
	for _, key := range drop {
		delete(m.Annotations, key)
	}
	d := l.do(UpdateMachine{Machine: m, What: "preservation is not asked for any more"}, ReasonPreservationStopped, "")
	if says != "" {
		m.Annotations = withKey(m.Annotations, applied, says)
		d.Action, d.Reason = UpdateMachine{Machine: m, What: "the node says " + says + " of preservation"}, ReasonPreserved
	}
	return d
}
