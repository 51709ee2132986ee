// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/internal/facts"
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
	case facts.DeletionRequested(node):
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
	if d := l.findNodeName(); d.Reason != "" {
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
		d = d.by(l.creationDeadline())
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
	return l.findVMAfter(h, "")
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
	healthy, bad := facts.JudgeHealth(node.Status.Conditions, l.p.HealthConditions)
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
		return l.unhealthy(reasonNodeUnhealthy, "the node is unhealthy: "+facts.ConditionList(bad), bad)
	default:
		return l.waitToJoin(reasonWaitingForNode, "the node is not ready: "+facts.ConditionList(bad))
	}
}

// copyConditions returns otherwise if the recorded conditions of the Node are up to date. Else it
// adds the conditions to the status that otherwise writes, or returns a decision that writes them.
// The write does not postpone a timeout.
func (l *logic) copyConditions(node *corev1.Node, otherwise Decision) Decision {
	if !facts.ConditionsChanged(l.m.Status.Conditions, node.Status.Conditions) {
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
		s.Conditions = facts.WithNodeConditions(node.Status.Conditions, s.Conditions)
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
		"Machine %s is unhealthy - changing MachinePhase to Unknown. Node conditions: %s", l.m.Name, facts.ConditionList(bad))), l.conditionsOf(node))
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
	if d := l.confirmNode(l.creationDeadline()); d.Reason != "" {
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
	d := l.replacement()
	if _, takes := d.Action.(TakePermit); d.Reason != "" && !takes {
		if l.refused() { // a VM that is gone need not be held
			d = l.checkVM(d)
		}
		return d
	}
	if look := l.confirmNode(waiting.NextCheck); look.Reason != "" {
		return look
	}
	if d.Reason != "" {
		return d
	}
	return l.move(reasonHealthTimeout, l.operation(l.m.Status.LastOperation.Type, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"Machine %s health checks failing since last %s. Updating machine phase to Failed. Node Conditions: %s%s",
		l.m.Name, l.p.HealthTimeout, facts.ConditionList(bad), l.vanishedText())))
}

// ParseHealthConditions returns the types in a comma-separated list of Node conditions, as in
// spec.nodeConditions of a machine. It ignores spaces, empty entries and duplicates.
func ParseHealthConditions(list string) []corev1.NodeConditionType {
	var types []corev1.NodeConditionType
	for entry := range strings.SplitSeq(list, ",") {
		t := corev1.NodeConditionType(strings.TrimSpace(entry))
		if t != "" && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// targetRetry is the wait after the API server of the Nodes did not answer.
const targetRetry = 10 * time.Second

// confirmNode reads the Node from the API server before a machine fails because of a timeout that
// ended at end. A cache may be older without a sign of it. The decision is zero if the view of the
// Node is not older than end. While the API server does not answer, the machine does not fail.
func (l *logic) confirmNode(end time.Time) Decision {
	switch view := l.in.Node; {
	case view.NoTarget, view.Looked && !view.AsOf.IsZero() && !view.AsOf.Before(end):
		return Decision{}
	case view.Unanswered:
		return hold(l.until("target-cluster", reasonTargetUnreachable, fmt.Sprintf(
			"the API server does not answer, so the state of %s is not known: the machine does not fail", l.nodeSubject()), targetRetry))
	default:
		return l.do(machinist.Refresh{Kind: "Node", Name: l.nodeName()}, reasonLookFirst, "before the machine fails")
	}
}

// ReadyAgain returns when the Node of a Failed machine became Ready after the machine failed.
// [Decide] makes such a machine Running again, and its MachineSet waits a moment for that before it
// deletes the machine. The result is zero in these cases:
//
//   - The machine is nil, is not Failed, or is being deleted.
//   - The Node is missing, was not read, or is that of another VM or machine.
//   - Ready is not True, or became True before the machine failed. The Node of a VM that has
//     vanished stays Ready for a while.
//   - The phase has no time, or one after now.
//   - The Node takes part in an in-place update.
//
// The result may be after now, because kubelets have clocks of their own.
func (v NodeView) ReadyAgain(m *v1alpha1.Machine, now time.Time) time.Time {
	if v.NoTarget || !v.Looked {
		return time.Time{}
	}
	return facts.ReadyAgain(m, v.Node, now)
}

// readyAgain reports whether a Failed machine becomes Running: its Node became Ready after the
// machine failed, and its critical components are ready.
func (l *logic) readyAgain() bool {
	node := l.ownNode()
	return node != nil && !facts.CriticalTaint(node) && recorded.Known(l.in.Node.ReadyAgain(l.m, l.now), l.now)
}

// readySoon returns the next check of a Failed machine whose Node became Ready at a time up to a
// minute after now. Zero means none.
func (l *logic) readySoon() time.Time {
	at := l.in.Node.ReadyAgain(l.m, l.now)
	if !at.After(l.now) || at.After(l.now.Add(time.Minute)) {
		return time.Time{}
	}
	return at
}
