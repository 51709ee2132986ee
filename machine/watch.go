// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// watch returns the decision for a machine with a VM. A permit that is not used is returned.
func (l *logic) watch() Decision { return l.withoutPermit(l.watchNode()) }

// watchNode returns the decision for a machine with a VM, from its Node.
func (l *logic) watchNode() Decision {
	node := l.ownNode()
	switch {
	case l.in.Node.NoTarget:
		return l.untargeted()
	case l.nodeName() == "":
		return l.nodeUnnamed()
	case !l.nodeLooked():
		return l.notObserved(l.nodeSubject(), "")
	case node == nil && l.in.Node.Node != nil:
		return l.nodeOfOther()
	case node == nil:
		return l.nodeMissing(reasonNodeGone, "the node does not exist")
	case deletionRequested(node):
		return l.deleteMachine()
	}
	return l.firstAction(l.syncNode, l.inPlaceUpdate, l.health)
}

// nodeUnnamed looks for the name of the Node of a machine without the label node. A missing label
// alone is no reason to fail the machine. If the provider does not find the VM either, the machine
// has no Node.
func (l *logic) nodeUnnamed() Decision {
	switch phase := l.phase(); {
	case phase == v1alpha1.MachineFailed:
		return l.waitForReplacement()
	case phase == v1alpha1.MachinePending && l.expired():
		return l.failToJoin()
	}
	if d, out := l.findNodeName(); out {
		return d
	}
	d := l.lookAgain(l.nodeSubject(), "the name of its node is not known")
	if d.Action != nil {
		return d
	}
	if l.in.Node.Looked && l.in.VM.notFound() && leads(l.phase(), reasonNodeGone) {
		return l.nodeMissing(reasonNodeGone, d.Message)
	}
	if l.phase() == v1alpha1.MachinePending {
		d.NextCheck = machinist.Earliest(d.NextCheck, l.creationDeadline())
	}
	if timed := leads(l.phase(), reasonHealthTimeout) || leads(l.phase(), reasonUpdateTimeout); !timed || !l.in.Node.Looked {
		return d
	}
	return l.firstAction(func() Decision { return d }, func() Decision { return l.nodeMissing(ReasonNotObserved, d.Message) })
}

// lookAgain looks for the VM of a machine whose records were lost, at most once a minute.
func (l *logic) lookAgain(subject, message string) Decision {
	h := machinist.Hold{Subject: subject, Reason: ReasonNotObserved, Message: message}
	switch vm := l.in.VM; {
	case !l.in.Class.usable():
		h.Until = l.now.Add(time.Minute)
	case vm.Failure.Code != codes.OK:
		h.Until = l.retryAt(vm.Failure)
	case recorded.Known(vm.SeenAt, l.now):
		h.Until = vm.SeenAt.Add(time.Minute)
	}
	if !l.now.Before(h.Until) {
		return l.do(CallDriver{Operation: driver.OpGetMachineStatus}, reasonLookFirst, "")
	}
	return hold(h)
}

// findProviderID looks for the VM of a machine without a provider ID, and records the ID. A missing
// ID alone is no reason to fail the machine or to create a VM.
func (l *logic) findProviderID() Decision {
	if l.m.Spec.ProviderID != "" || l.phase() == v1alpha1.MachineFailed {
		return Decision{}
	}
	if l.in.VM.ProviderID != "" {
		m, _ := l.withIdentity()
		return l.write(m, "provider ID "+m.Spec.ProviderID, reasonVMKnown)
	}
	return l.lookAgain("machine/"+l.m.Name, "its provider ID is not known")
}

// nodeOfOther treats a Node that is not that of the machine as missing, although the label names it.
// A machine that has not joined fails if the Node is that of another VM, because its own VM cannot
// join with this name.
func (l *logic) nodeOfOther() Decision {
	p, why := l.nodeProof()
	if p == foreign && l.moves(reasonStaleNode) {
		return l.staleNode()
	}
	return l.nodeMissing(reasonNodeUnproven, "the node is not that of the machine: "+why)
}

// staleNode fails a machine whose Node would have the name of the Node of another machine.
func (l *logic) staleNode() Decision {
	return l.move(reasonStaleNode, l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, "VM using old node obj"))
}

// nodeMissing returns the decision for a machine without a Node.
func (l *logic) nodeMissing(r machinist.Reason, message string) Decision {
	unfinished := l.in.VM.Presence == uninitialized && l.ownNode() == nil // its creation did not end
	switch phase := l.phase(); {
	case unfinished && (phase == v1alpha1.MachineUnknown || phase == v1alpha1.MachinePending):
		return l.correctPhase()
	case leads(phase, reasonNodeGone):
		return l.move(reasonNodeGone, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
			"Node object went missing. Machine %s is unhealthy - changing MachinePhase to Unknown", l.m.Name)))
	case leads(phase, reasonHealthTimeout):
		return l.unhealthy(r, message, nil)
	case leads(phase, reasonUpdateTimeout):
		return l.updateTimeout(machinist.Hold{Subject: l.nodeSubject(), Reason: r, Message: message})
	case phase == v1alpha1.MachineFailed:
		return l.waitForReplacement()
	default:
		if r == reasonNodeGone {
			r, message = reasonWaitingForNode, "the node has not joined yet"
		}
		return l.waitToJoin(r, message)
	}
}

// health returns the decision from the conditions of the Node.
func (l *logic) health() Decision {
	node := l.in.Node.Node
	healthy, bad := judgeHealth(node.Status.Conditions, l.p.HealthConditions)
	return l.copyConditions(node, l.judgeNode(node, healthy, bad))
}

// judgeNode returns the decision from the health of the Node.
func (l *logic) judgeNode(node *corev1.Node, healthy bool, bad []corev1.NodeCondition) Decision {
	switch phase := l.phase(); {
	case leads(phase, reasonUpdateTimeout): // judged when the update is over
		return settled(reasonNodeReady)
	case phase == v1alpha1.MachineInPlaceUpdateFailed:
		return l.unhealthy(reasonUpdateFailed, "the in-place update has failed", node.Status.Conditions)
	case healthy && l.moves(reasonNodeReady):
		if p, _ := l.nodeProof(); p == unasked {
			return l.askForProof() // only a proven Node makes the machine Running
		}
		return l.becomeRunning(node)
	case phase == v1alpha1.MachineFailed:
		return l.waitForReplacement()
	case healthy && phase == v1alpha1.MachinePending:
		return l.waitToJoin(reasonCriticalComponents, "critical components are not ready")
	case healthy:
		return settled(reasonNodeReady)
	case l.moves(reasonNodeUnhealthy):
		return l.becomeUnknown(node, bad)
	case leads(phase, reasonHealthTimeout):
		return l.unhealthy(reasonNodeUnhealthy, "the node is unhealthy: "+conditionList(bad), bad)
	default:
		return l.waitToJoin(reasonWaitingForNode, "the node is not ready: "+conditionList(bad))
	}
}

// copyConditions returns otherwise if the recorded conditions of the Node are up to date. Else it
// adds the conditions to the status that otherwise writes, or returns a decision that writes them.
// The write does not postpone a timeout.
func (l *logic) copyConditions(node *corev1.Node, otherwise Decision) Decision {
	if !conditionsChanged(withoutOwn(l.m.Status.Conditions), withoutOwn(node.Status.Conditions)) {
		return otherwise
	}
	if m := statusOf(otherwise.Action); m != nil {
		l.conditionsOf(node)(&m.Status)
		return otherwise
	}
	switch otherwise.Action.(type) {
	case TakePermit, machinist.Refresh: // what they are for will record them
		return otherwise
	default:
		return l.record(reasonConditionsChanged, "", l.conditionsOf(node))
	}
}

// conditionsOf returns a change of the status that records the conditions of the Node.
func (l *logic) conditionsOf(node *corev1.Node) func(*v1alpha1.MachineStatus) {
	return func(s *v1alpha1.MachineStatus) {
		s.Conditions = withNodeConditions(node.Status.Conditions, s.Conditions)
	}
}

// becomeRunning records that the machine is healthy.
func (l *logic) becomeRunning(node *corev1.Node) Decision {
	op := l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateSuccessful,
		fmt.Sprintf("Machine %s successfully re-joined the cluster", l.m.Name))
	if last := l.m.Status.LastOperation; last.Type == v1alpha1.MachineOperationCreate && last.State != v1alpha1.MachineStateSuccessful {
		op.Type, op.Description = v1alpha1.MachineOperationCreate, fmt.Sprintf(
			"Machine %s successfully joined the cluster in %s", l.m.Name, max(0, l.now.Sub(l.creationStart()).Round(time.Second)))
	}
	return l.move(reasonNodeReady, op, l.conditionsOf(node), stating(nil))
}

// becomeUnknown records that a machine in phase Running is unhealthy.
func (l *logic) becomeUnknown(node *corev1.Node, bad []corev1.NodeCondition) Decision {
	return l.move(reasonNodeUnhealthy, l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
		"Machine %s is unhealthy - changing MachinePhase to Unknown. Node conditions: %s", l.m.Name, conditionList(bad))), l.conditionsOf(node))
}

// waitToJoin waits for the Node. A Pending machine fails at the end of the creation timeout.
func (l *logic) waitToJoin(r machinist.Reason, message string) Decision {
	h := machinist.Hold{Subject: l.nodeSubject(), Reason: r, Message: message}
	if l.phase() != v1alpha1.MachinePending {
		return hold(h)
	}
	if l.expired() {
		return l.failToJoin()
	}
	h.Until = l.creationDeadline()
	if r == reasonCriticalComponents {
		return hold(h)
	}
	return l.checkVM(hold(h))
}

// failToJoin fails a machine at the end of the creation timeout. The Node is read after that time
// first.
func (l *logic) failToJoin() Decision {
	if d, due := l.confirmNode(l.creationDeadline()); due {
		return d
	}
	return l.failCreation("")
}

// unhealthy waits for a machine to recover that is Unknown or whose in-place update has failed. At
// the end of the health timeout the machine fails, within the replacement limit.
func (l *logic) unhealthy(r machinist.Reason, message string, bad []corev1.NodeCondition) Decision {
	waiting, waits := l.timeout(machinist.Hold{Subject: l.nodeSubject(), Reason: r, Message: message}, l.p.HealthTimeout)
	if waits {
		return l.checkVM(waiting)
	}
	d, waits := l.replacement()
	if _, takes := d.Action.(TakePermit); waits && !takes {
		if l.refused() { // a VM that is gone need not be held
			d = l.checkVM(d)
		}
		return d
	}
	if look, due := l.confirmNode(waiting.NextCheck); due {
		return look
	}
	if waits {
		return d
	}
	return l.move(reasonHealthTimeout, l.operation(l.m.Status.LastOperation.Type, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"Machine %s health checks failing since last %s. Updating machine phase to Failed. Node Conditions: %s%s",
		l.m.Name, l.p.HealthTimeout, conditionList(bad), l.vanishedText())))
}
