// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// leave leads a machine that is being deleted out: the Node is marked and
// drained, the VM deleted, the Node deleted, the finalizer removed. Which of
// these is next follows from which of them are still there.
func (l life) leave() Decision {
	if !hasFinalizer(l.m, v1alpha1.MCMFinalizerName) {
		return settled(ReasonReleased)
	}
	if !l.in.Node.NoTarget && !l.in.Node.Looked {
		return hold(Hold{Subject: l.nodeSubject(), Reason: ReasonNodeNotObserved, Until: l.now.Add(actAgain)})
	}
	if l.unbegun() && l.in.Class.Looked && l.in.Class.Class == nil {
		return l.release() // there never was a class to make anything of
	}
	if d, out := l.nameNode(); out {
		return d
	}
	node := l.in.Node.Node
	if l.in.Node.NoTarget {
		node = nil
	}
	if node != nil && conditionOf(node.Status.Conditions, v1alpha1.NodeTerminationCondition) == nil {
		return l.do(SetNodeCondition{NodeName: node.Name, Condition: l.terminating()}, ReasonDeleting, "")
	}
	if l.m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating {
		return l.move(TriggerDeleted, func(s *v1alpha1.MachineStatus) {
			s.LastOperation = l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.GetVMStatus)
			s.CurrentStatus.PreserveExpiryTime = nil
			if l.newState() {
				s.LastKnownState = l.in.VM.LastKnownState
			}
		})
	}
	if node != nil && !l.in.VM.answersDelete() && !l.in.Drain.Done {
		return l.drain(node)
	}
	if d, waits := l.deleteVM(); waits {
		return d
	}
	if node != nil && (node.DeletionTimestamp.IsZero() || hasFinalizer(node, v1alpha1.NodeFinalizerName)) {
		return l.do(DeleteNode{NodeName: node.Name, UID: node.UID}, ReasonVMGone, "")
	}
	return l.release()
}

// release removes our finalizer.
func (l life) release() Decision {
	m := l.m.DeepCopy()
	m.Finalizers = withoutFinalizer(m.Finalizers, v1alpha1.MCMFinalizerName)
	return l.do(UpdateMachine{Machine: m, What: "no finalizer"}, ReasonReleased, "")
}

// unbegun says that it was never written down that a VM is wanted, so that there
// is none.
func (l life) unbegun() bool {
	s := l.m.Status
	return !l.intended() && s.CurrentStatus.Phase == "" && l.m.Labels[v1alpha1.NodeLabelKey] == "" && l.in.VM.ProviderID == "" &&
		(s.LastOperation.Type == "" || s.LastOperation.Type == v1alpha1.MachineOperationCreate)
}

// nameNode looks for the VM of a machine that goes before the name of its Node
// was written down, and writes it down: the Node may have joined, and has to be
// drained. If the provider cannot tell after a few attempts, the deletion goes
// on.
func (l life) nameNode() (Decision, bool) {
	vm := l.in.VM
	if l.in.Node.NoTarget || l.m.Labels[v1alpha1.NodeLabelKey] != "" {
		return Decision{}, false
	}
	switch vm.Sighting {
	case Uninitialized, Present:
		if vm.NodeName == "" {
			return Decision{}, false
		}
		m := l.m.DeepCopy()
		m.Labels = withKey(m.Labels, v1alpha1.NodeLabelKey, vm.NodeName)
		return l.do(UpdateMachine{Machine: m, What: "node " + vm.NodeName}, ReasonVMKnown, ""), true
	case NotLooked:
		return l.askName()
	default:
		return Decision{}, false
	}
}

// lookAttempts is how often a provider may fail to name a Node before a deletion
// goes on without.
const lookAttempts = 3

// askName looks for the VM to learn the name of its Node, or waits until it may.
// It returns false if there is no use in that.
func (l life) askName() (Decision, bool) {
	if !l.in.Class.usable() {
		return Decision{}, false
	}
	switch f := l.in.VM.Failure; {
	case f.Code == codes.OK || f.Operation == driver.OpCreateMachine:
	case f.Operation != driver.OpGetMachineStatus || f.Attempts >= lookAttempts:
		return Decision{}, false
	default:
		if until := f.until(l.p.Backoff); l.now.Before(until) {
			return hold(Hold{Subject: "provider", Reason: ReasonProviderFailed, Message: f.Message, Until: until}), true
		}
	}
	return l.do(LookForVM{}, ReasonLookFirst, ""), true
}

// terminating is the condition that tells others why the Node goes. It is set
// while the phase still tells.
func (l life) terminating() corev1.NodeCondition {
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeTerminationCondition, Status: corev1.ConditionTrue,
		Reason: v1alpha1.NodeScaledDown, Message: "Machine Controller is scaling down machine",
		LastHeartbeatTime: metav1.NewTime(l.now), LastTransitionTime: metav1.NewTime(l.now),
	}
	if l.m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
		c.Reason, c.Message = v1alpha1.NodeUnhealthy, "Machine Controller is terminating failed machine"
	}
	return c
}

// drain makes a round of draining, or waits for what the last one waits for.
func (l life) drain(node *corev1.Node) Decision {
	round, mode := l.in.Drain, DrainModeFor(l.m, node, l.p, l.now)
	next := round.NextCheck
	if round.Round.Before(mode.ForceAt) {
		next = earliest(next, mode.ForceAt)
	}
	if round.Round.IsZero() || !next.IsZero() && !l.now.Before(next) {
		return l.do(DrainNode{NodeName: node.Name, Mode: mode}, ReasonDraining, "")
	}
	if len(round.Holds) > 0 { // a drain that waits for nobody is over before anybody reads of it
		op, due := l.drainNews(round.Holds)
		if !due.IsZero() && !l.now.Before(due) {
			return l.recordOperation(ReasonDraining, op)
		}
		next = earliest(next, due)
	}
	d := Decision{Reason: ReasonDraining, Holds: slices.Clone(round.Holds), NextCheck: next}
	if len(d.Holds) == 0 {
		d.Holds = []Hold{{Subject: "node/" + node.Name, Reason: ReasonDraining, Until: next}}
	}
	return d
}

// tellAgain is for how long at least the machine tells the same of its drain, so
// that one that takes its usual time costs no further write.
const tellAgain = 30 * time.Second

// drainNews returns what the machine should tell of a drain that waits, and when:
// that it has begun, at once; what it waits for, when that has taken long. Zero
// means that this has been told.
func (l life) drainNews(holds []Hold) (v1alpha1.LastOperation, time.Time) {
	last := l.m.Status.LastOperation
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain)
	if last.Type != op.Type || last.State != op.State || !strings.HasPrefix(last.Description, op.Description) {
		return op, l.now
	}
	op.Description += "; " + waitsFor(holds)
	if sameOperation(op, last) {
		return op, time.Time{}
	}
	return op, last.LastUpdateTime.Add(tellAgain)
}

// waitsFor names the first holds and counts the others.
func waitsFor(holds []Hold) string {
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

// answersDelete says that the last call was one of DeleteMachine, and found
// nothing or left nothing.
func (v VMView) answersDelete() bool {
	return v.Asked == driver.OpDeleteMachine && v.Failure.Code == codes.OK && (v.Sighting == Deleted || v.Sighting == Absent)
}

// deleteVM deletes the VM, and returns false once it is gone.
//
// That all is deleted is believed at once if the VM was known. Otherwise, and if
// nothing was found, something made just before may not show yet: then the
// deletion has to be repeated after a while.
func (l life) deleteVM() (Decision, bool) {
	vm := l.in.VM
	if settled := l.settled(); vm.answersDelete() {
		switch {
		case vm.Sighting == Deleted && l.m.Spec.ProviderID != "", !vm.SeenAt.Before(settled):
			return Decision{}, false
		case l.now.Before(settled):
			return hold(Hold{
				Subject: "provider", Reason: ReasonVMNotSettled, Until: settled,
				Message: "a VM that was made just before may not show yet",
			}), true
		}
	}
	if c := l.in.Class; !c.usable() {
		return l.classGone(c), true
	}
	if f := vm.Failure; f.Code != codes.OK && f.Operation == driver.OpDeleteMachine {
		if d, waiting := l.deletionFailed(f); waiting {
			return d, true
		}
	}
	if vm.Asked == driver.OpDeleteMachine && !l.in.Node.NoTarget && l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return l.do(LookForVM{}, ReasonLookFirst, ""), true // meanwhile its Node may have joined
	}
	return l.do(DeleteVM{}, ReasonDrained, ""), true
}

// settled returns from when on the provider shows everything that was made:
// nothing is made any more once the phase Terminating is written.
func (l life) settled() time.Time {
	if l.p.Settle < 0 {
		return time.Time{}
	}
	last := l.m.DeletionTimestamp.Time
	if entered := l.m.Status.CurrentStatus.LastUpdateTime.Time; entered.After(last) {
		last = entered
	}
	return last.Add(time.Second + l.p.Settle) // recorded times have no fractions
}

// classGone waits for a class without which the driver cannot be called.
func (l life) classGone(c ClassView) Decision {
	h := Hold{Subject: l.classSubject(), Reason: ReasonClassMissing, Until: l.now.Add(time.Minute)}
	switch {
	case c.Class != nil:
		h.Reason, h.Message = ReasonClassUnusable, c.Problem
	case !c.Looked:
		h.Message, h.Until = "nobody has looked", l.now.Add(actAgain)
	default:
		h.Message = "the VM cannot be deleted without it"
	}
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf("%s: %s. %s", h.Subject, h.Message, v1alpha1.InitiateVMDeletion))
	if c.Looked && !sameOperation(op, l.m.Status.LastOperation) {
		return l.recordOperation(h.Reason, op)
	}
	return hold(h)
}

// deletionFailed writes down how the deletion failed, and waits until it may be
// repeated. It returns false when that time has come.
func (l life) deletionFailed(f CallFailure) (Decision, bool) {
	op := l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"VM deletion failed due to - %s. However, will re-try in the next resync. %s", f.Message, v1alpha1.InitiateVMDeletion))
	if !sameOperation(op, l.m.Status.LastOperation) || l.newState() {
		return l.recordOperation(ReasonProviderFailed, op), true
	}
	if until := f.until(l.p.Backoff); l.now.Before(until) {
		return hold(Hold{Subject: "provider", Reason: ReasonProviderFailed, Message: f.Message, Until: until}), true
	}
	return Decision{}, false
}

// recordOperation writes an operation of the deletion, and the driver's text if
// it gave one.
func (l life) recordOperation(r Reason, op v1alpha1.LastOperation) Decision {
	return l.record(r, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = op
		if l.newState() {
			s.LastKnownState = l.in.VM.LastKnownState
		}
	})
}
