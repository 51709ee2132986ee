// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// logic has the inputs of one decision. Its methods return decisions and do not change it.
type logic struct {
	in  Observation
	m   *v1alpha1.Machine
	p   Policy
	now time.Time
	// templateApplied means that the Node has all of the node template, and that this is recorded
	// on it.
	templateApplied bool
}

// recheckAfter is when to decide again after an action, in case its effect was lost.
const recheckAfter = 5 * time.Second

// do returns a decision with an action.
func (l *logic) do(a machinist.Action, r machinist.Reason, message string) Decision {
	return Decision{Action: a, Reason: r, Message: message, NextCheck: l.now.Add(recheckAfter)}
}

// hold returns a decision that waits.
func hold(h machinist.Hold) Decision {
	return Decision{Reason: h.Reason, Message: h.Message, Holds: []machinist.Hold{h}, NextCheck: h.Until}
}

// until returns a hold that lasts for a while.
func (l *logic) until(subject string, r machinist.Reason, message string, lasts time.Duration) machinist.Hold {
	return machinist.Hold{Subject: subject, Reason: r, Message: message, Until: l.now.Add(lasts)}
}

// notObserved returns a decision that waits for an observation.
func (l *logic) notObserved(subject, message string) Decision {
	return hold(l.until(subject, ReasonNotObserved, message, recheckAfter))
}

// by returns the decision with a next check at t at the latest. Zero has no effect.
func (d Decision) by(t time.Time) Decision {
	d.NextCheck = machinist.Earliest(d.NextCheck, t)
	return d
}

// settled returns a decision that waits for a change.
func settled(r machinist.Reason) Decision { return Decision{Reason: r} }

// record returns a decision that writes the status with a change. It also writes the text of the
// driver.
func (l *logic) record(r machinist.Reason, message string, change func(*v1alpha1.MachineStatus)) Decision {
	m := l.m.DeepCopy()
	m.Status.LastKnownState = cmp.Or(l.in.VM.LastKnownState, m.Status.LastKnownState)
	change(&m.Status)
	what := fmt.Sprintf("phase %q, %s %s", m.Status.CurrentStatus.Phase, m.Status.LastOperation.Type, m.Status.LastOperation.State)
	return l.do(machinist.Update{Before: l.m, Object: m, Subresource: status, Unchanged: true, Changes: []string{what}}, r, message)
}

// status is the subresource of the status.
const status = "status"

// statusOf returns the machine whose status an action writes, or nil.
func statusOf(a machinist.Action) *v1alpha1.Machine {
	u, _ := a.(machinist.Update)
	if m, ok := u.Object.(*v1alpha1.Machine); ok && u.Subresource == status {
		return m
	}
	return nil
}

// write returns a decision that writes metadata and spec of the machine.
func (l *logic) write(m *v1alpha1.Machine, what string, r machinist.Reason) Decision {
	return l.do(machinist.Update{Before: l.m, Object: m, Unchanged: true, Changes: []string{what}}, r, "")
}

// recordOperation returns a decision that writes the last operation.
func (l *logic) recordOperation(r machinist.Reason, op v1alpha1.LastOperation) Decision {
	return l.record(r, op.Description, func(s *v1alpha1.MachineStatus) { s.LastOperation = op })
}

// operation returns a last operation with the time now. What it waits for is added later.
func (l *logic) operation(t v1alpha1.MachineOperationType, s v1alpha1.MachineState, description string) v1alpha1.LastOperation {
	return v1alpha1.LastOperation{Type: t, State: s, Description: facts.WithoutMark(description), LastUpdateTime: metav1.NewTime(l.now)}
}

// phase returns the recorded phase.
func (l *logic) phase() v1alpha1.MachinePhase { return l.m.Status.CurrentStatus.Phase }

// enter changes the phase. The other fields of the current status stay.
func (l *logic) enter(s *v1alpha1.MachineStatus, phase v1alpha1.MachinePhase) {
	s.CurrentStatus.Phase = phase
	s.CurrentStatus.TimeoutActive = phase == v1alpha1.MachinePending
	s.CurrentStatus.LastUpdateTime = metav1.NewTime(l.now)
}

// resetPhaseTime returns a decision that writes now as the time of the phase. Timeouts count from
// it, and the recorded time is missing or in the future.
func (l *logic) resetPhaseTime(r machinist.Reason) Decision {
	return l.record(r, l.m.Status.LastOperation.Description, func(s *v1alpha1.MachineStatus) { l.enter(s, s.CurrentStatus.Phase) })
}

// sameOperation reports whether an operation is the recorded one, except for its time and what the recorded
// text says about waits.
func sameOperation(op, recorded v1alpha1.LastOperation) bool {
	return op.Type == recorded.Type && op.State == recorded.State && op.ErrorCode == recorded.ErrorCode &&
		(op.Description == recorded.Description || op.Description == facts.WithoutWaits(recorded.Description))
}

// first returns the first decision that is not zero. A question returns the zero Decision if it has
// no answer, and the next question follows.
func first(questions ...func() Decision) Decision {
	for _, ask := range questions {
		if d := ask(); d.Reason != "" {
			return d
		}
	}
	return Decision{}
}

// firstAction returns the first decision with an action. Without one it returns the holds of all
// decisions, with the reason of the first that waits. Zero Decisions are skipped. A Node is written
// only if it is proven: see [logic.withProof].
func (l *logic) firstAction(questions ...func() Decision) Decision {
	var all Decision
	for _, ask := range questions {
		d := l.withProof(ask())
		switch {
		case d.Action != nil:
			return d
		case d.Reason == "":
			continue
		}
		if len(all.Holds) == 0 {
			all.Reason, all.Message = d.Reason, d.Message
		}
		all.Holds = append(all.Holds, d.Holds...)
		all.NextCheck = machinist.Earliest(all.NextCheck, d.NextCheck)
	}
	return all
}
