// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// deletion returns the next step for a machine that is being deleted. The steps are the questions
// below, in this order, and the next one follows from what is observed. A machine without the
// finalizer needs nothing. A Node that is not that of the machine is treated as missing.
func (l *logic) deletion() Decision {
	if !facts.HasFinalizer(l.m, v1alpha1.MCMFinalizerName) {
		return settled(reasonReleased)
	}
	if d := l.dropTokens(); d.Action != nil && !l.forcedTooLong() {
		return d
	}
	if l.notRequested() {
		return l.removeFinalizer() // there is neither a VM nor a Node
	}
	return first(
		l.readNode, l.awaitCreation, l.findNodeName, l.proveDeletion, l.holdForSharedID, l.announce,
		l.validity, l.markNode, l.emptyNode, l.deleteVM, l.deleteNode, l.removeFinalizer,
	)
}

// announce writes the condition Terminating of the Node, and then the phase Terminating.
func (l *logic) announce() Decision {
	node := l.ownNode()
	_, known := facts.DeletionNoticed(l.m, l.now)
	switch {
	case node != nil && !l.hasTerminating(node):
		return l.writeCondition(l.terminating(), reasonDeleting)
	case l.phase() != v1alpha1.MachineTerminating:
		return l.beginDeletion(l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.GetVMStatus))
	case !known:
		return l.resetPhaseTime(reasonDeleting)
	default:
		return Decision{}
	}
}

// deleteNode deletes the Node after the VM.
func (l *logic) deleteNode() Decision {
	node, why := l.ownNode(), reasonVMGone
	switch {
	case node == nil || !node.DeletionTimestamp.IsZero() && !facts.HasFinalizer(node, v1alpha1.NodeFinalizerName):
		return Decision{}
	case !l.in.VM.deleteAnswered():
		why = reasonClassMissing
	}
	return l.do(machinist.Delete{Object: node}, why, "")
}

// readNode waits until the Node was read. After the deletion has been forced for a minute, it reads
// the Node from the API server. If that does not answer, the deletion continues without the Node.
func (l *logic) readNode() Decision {
	view := l.in.Node
	switch {
	case view.NoTarget, l.nodeLooked():
		return Decision{}
	case !l.forcedTooLong():
		return l.notObserved(l.nodeSubject(), "").by(l.forcedFrom())
	case view.Unanswered:
		return Decision{}
	default:
		return l.do(machinist.Refresh{Kind: "Node", Name: l.nodeName()}, reasonLookFirst, "before the deletion continues without it")
	}
}

// beginDeletion records the phase Terminating, and that no VM was requested, which the phase showed.
// It ends the preservation.
func (l *logic) beginDeletion(op v1alpha1.LastOperation) Decision {
	return l.move(reasonDeleting, op, func(s *v1alpha1.MachineStatus) {
		s.CurrentStatus.PreserveExpiryTime = nil
		if l.notStarted() {
			stating(l.request(corev1.ConditionFalse, reasonDeleting, ""))(s)
		}
	})
}

// removeFinalizer removes the finalizer after the bootstrap tokens, which no controller would
// delete later. In a forced deletion, a token that could not be deleted for a minute is left until
// it expires.
func (l *logic) removeFinalizer() Decision {
	if d := l.dropTokens(); d.Reason != "" && !l.forcedTooLong() {
		return d
	}
	m := l.m.DeepCopy()
	m.Finalizers = withoutFinalizer(m.Finalizers, v1alpha1.MCMFinalizerName)
	return l.write(m, "no finalizer", reasonReleased)
}

// holdForSharedID holds a deletion while it is not known which machine owns the VM. A forced
// deletion continues, and leaves the VM to the other machine.
func (l *logic) holdForSharedID() Decision {
	if l.m.Spec.ProviderID != "" && !l.in.ProviderID.Compared {
		return hold(l.until("machine/"+l.m.Name, reasonProviderIDShared, "its provider ID was not compared with those of the other machines", recheckAfter))
	}
	switch {
	case l.ownership() != sharedVM, facts.DeletionForced(l.m):
		return Decision{}
	case l.phase() != v1alpha1.MachineTerminating:
		return l.beginDeletion(l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.GetVMStatus))
	}
	if d := l.validity(); d.Action != nil {
		return d
	}
	return hold(l.until("machine/"+l.sameIDMachines()[0], reasonProviderIDShared, l.sharedText(), time.Minute))
}

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
	since, _ := facts.DeletionNoticed(l.m, l.now)
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
// instead. Both may have ended under another controller before.
func (l *logic) emptyNode() Decision {
	node := l.ownNode()
	if node == nil || l.in.VM.Presence == deleted || l.vmGone() {
		return Decision{}
	}
	a, before := l.deletionDrain(node), facts.TakeOver(l.m, node, l.now)
	since, over := l.in.Drain.of(a).endedAt(a, l.now)
	if before.Drained {
		since, over = l.m.Status.LastOperation.LastUpdateTime.Time, true
	}
	switch {
	case !over:
		return l.deletionPass(node, a)
	case !before.Detached && (before.Forced || a.unreachable() || a.forced(l.now)):
		return l.detach(node, since)
	default:
		return Decision{}
	}
}

// deletionPass makes a pass of the drain for a deletion, or waits.
func (l *logic) deletionPass(node *corev1.Node, a DrainNode) Decision {
	d := l.drain(node, a, "", l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain))
	if d.Action != nil {
		return d
	}
	return d.by(l.in.Drain.of(a).forceEnds(a, l.now))
}

// detach deletes the VolumeAttachments of a Node after a forced drain, because no kubelet unmounts
// the volumes. It does not wait until they are detached, and gives up after a minute.
func (l *logic) detach(node *corev1.Node, since time.Time) Decision {
	view := l.in.Attachments
	if view.Looked {
		since = view.AskedAt
	}
	end, live := since.Add(forcedDrain), facts.LiveAttachments(node.Name, view.Attachments)
	switch {
	case (!view.Looked || !since.IsZero()) && !l.now.Before(end), view.Looked && len(live) == 0:
		return Decision{}
	case view.Looked:
		return l.do(DeleteAttachments{Attachments: live}, reasonDetaching, "")
	}
	h := l.until("node/"+node.Name, reasonDetaching, "its VolumeAttachments were not read", recheckAfter)
	h.Until = machinist.Earliest(h.Until, end)
	return hold(h)
}
