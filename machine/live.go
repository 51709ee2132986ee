// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// live watches over a machine that has a VM.
func (l life) live() Decision {
	switch {
	case l.in.Node.NoTarget && l.m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed:
		return l.failed()
	case l.in.Node.NoTarget:
		return settled(ReasonAvailable)
	case l.m.Labels[v1alpha1.NodeLabelKey] == "":
		return l.nodeUnnamed()
	case !l.in.Node.Looked:
		return hold(Hold{Subject: l.nodeSubject(), Reason: ReasonNodeNotObserved, Until: l.now.Add(actAgain)})
	case l.in.Node.Node == nil:
		return l.nodeMissing()
	case nodeDeleted(l.in.Node.Node):
		return l.do(DeleteMachine{Namespace: l.m.Namespace, Name: l.m.Name, UID: l.m.UID}, ReasonNodeDeleted, "")
	}
	return l.inTurn(l.syncNode, l.inPlaceUpdate, l.health)
}

// nodeSubject names the Node, or the machine as long as the Node has no name.
func (l life) nodeSubject() string {
	if name := l.m.Labels[v1alpha1.NodeLabelKey]; name != "" {
		return "node/" + name
	}
	return "machine/" + l.m.Name
}

// nodeUnnamed finds out which Node a machine has whose label was lost. Nothing
// is concluded from that loss.
func (l life) nodeUnnamed() Decision {
	switch phase := l.m.Status.CurrentStatus.Phase; {
	case phase == v1alpha1.MachineFailed:
		return l.failed()
	case phase == v1alpha1.MachinePending && l.expired():
		return l.timeOut("")
	}
	if d, out := l.nameNode(); out {
		return d
	}
	vm, again := l.in.VM, l.now.Add(time.Minute)
	if l.in.Class.usable() {
		again = vm.SeenAt.Add(time.Minute)
		if vm.Failure.Code != codes.OK {
			again = vm.Failure.until(l.p.Backoff)
		}
		if !l.now.Before(again) {
			return l.do(LookForVM{}, ReasonLookFirst, "")
		}
	}
	d := hold(Hold{Subject: l.nodeSubject(), Reason: ReasonNodeNotObserved, Message: "the name of its node is not known", Until: again})
	if l.m.Status.CurrentStatus.Phase == v1alpha1.MachinePending {
		d.NextCheck = earliest(d.NextCheck, l.creationDeadline())
	}
	return d
}

// nodeMissing judges a machine whose Node does not exist.
func (l life) nodeMissing() Decision {
	switch l.m.Status.CurrentStatus.Phase {
	case v1alpha1.MachineRunning:
		return l.move(TriggerNodeGone, func(s *v1alpha1.MachineStatus) {
			s.LastOperation = l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
				"Node object went missing. Machine %s is unhealthy - changing MachinePhase to Unknown", l.m.Name))
		})
	case v1alpha1.MachineUnknown:
		return l.unhealthy(ReasonNodeGone, "the node does not exist", nil)
	case v1alpha1.MachineFailed:
		return l.failed()
	default:
		return l.waitToJoin(ReasonWaitingForNode, "the node has not joined yet")
	}
}

// health judges a machine by the conditions of its Node.
func (l life) health() Decision {
	node, phase := l.in.Node.Node, l.m.Status.CurrentStatus.Phase
	judged := JudgeHealth(node.Status.Conditions, l.p.HealthRules, l.now)
	switch {
	case inPlace(phase):
		return l.copyConditions(node, settled(ReasonNodeReady))
	case judged.Healthy && l.moves(TriggerNodeHealthy):
		return l.run(node)
	case phase == v1alpha1.MachineFailed:
		return l.copyConditions(node, l.failed())
	case judged.Healthy && phase == v1alpha1.MachinePending:
		return l.copyConditions(node, l.waitToJoin(ReasonCriticalComponents, "critical components are not ready"))
	case judged.Healthy:
		d := settled(ReasonNodeReady)
		d.NextCheck = judged.NextCheck
		return l.copyConditions(node, d)
	case l.moves(TriggerNodeUnhealthy):
		return l.doubt(node, judged.Bad)
	case phase == v1alpha1.MachineUnknown:
		return l.copyConditions(node, l.unhealthy(ReasonNodeUnhealthy, "the node is unhealthy: "+conditionList(judged.Bad), judged.Bad))
	default:
		return l.copyConditions(node, l.waitToJoin(ReasonWaitingForNode, "the node is not ready: "+conditionList(judged.Bad)))
	}
}

func inPlace(phase v1alpha1.MachinePhase) bool {
	return phase == v1alpha1.MachineInPlaceUpdating || phase == v1alpha1.MachineInPlaceUpdateFailed
}

// copyConditions records the conditions of the Node if they have changed;
// otherwise what was decided stands. A decision to write something else records
// them too, so that no change can put off a timeout.
func (l life) copyConditions(node *corev1.Node, otherwise Decision) Decision {
	if !ConditionsChanged(l.m.Status.Conditions, node.Status.Conditions) {
		return otherwise
	}
	if w, ok := otherwise.Do.(UpdateStatus); ok {
		w.Machine.Status.Conditions = node.DeepCopy().Status.Conditions
		return otherwise
	}
	d := l.record(ReasonConditionsChanged, func(s *v1alpha1.MachineStatus) {
		s.Conditions = node.DeepCopy().Status.Conditions
	})
	d.Message = ""
	return d
}

// run records that the machine is healthy.
func (l life) run(node *corev1.Node) Decision {
	return l.move(TriggerNodeHealthy, func(s *v1alpha1.MachineStatus) {
		s.Conditions = node.DeepCopy().Status.Conditions
		if s.LastOperation.Type == v1alpha1.MachineOperationCreate && s.LastOperation.State != v1alpha1.MachineStateSuccessful {
			s.LastOperation = l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateSuccessful, fmt.Sprintf(
				"Machine %s successfully joined the cluster in %s", l.m.Name, l.now.Sub(l.m.CreationTimestamp.Time).Round(time.Second)))
		} else {
			s.LastOperation = l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateSuccessful, fmt.Sprintf(
				"Machine %s successfully re-joined the cluster", l.m.Name))
		}
	})
}

// doubt records that a machine that was healthy is not.
func (l life) doubt(node *corev1.Node, bad []corev1.NodeCondition) Decision {
	return l.move(TriggerNodeUnhealthy, func(s *v1alpha1.MachineStatus) {
		s.Conditions = node.DeepCopy().Status.Conditions
		s.LastOperation = l.operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, fmt.Sprintf(
			"Machine %s is unhealthy - changing MachinePhase to Unknown. Node conditions: %s", l.m.Name, conditionList(bad)))
	})
}

// waitToJoin waits for a Node: that of a Pending machine until the creation
// timeout, which fails the machine.
func (l life) waitToJoin(r Reason, message string) Decision {
	h := Hold{Subject: l.nodeSubject(), Reason: r, Message: message}
	if l.m.Status.CurrentStatus.Phase == v1alpha1.MachinePending {
		if l.expired() {
			return l.timeOut("")
		}
		h.Until = l.creationDeadline()
	}
	return hold(h)
}

// unhealthy waits for an Unknown machine to recover until the health timeout,
// then fails it if the replacement limit allows.
func (l life) unhealthy(r Reason, message string, bad []corev1.NodeCondition) Decision {
	if l.p.HealthTimeout <= 0 {
		return hold(Hold{Subject: l.nodeSubject(), Reason: r, Message: message})
	}
	since := l.m.Status.CurrentStatus.LastUpdateTime
	if since.IsZero() { // the timeout begins now
		return l.record(r, func(s *v1alpha1.MachineStatus) { l.enter(s, v1alpha1.MachineUnknown) })
	}
	end := since.Add(l.p.HealthTimeout)
	if l.now.Before(end) {
		return hold(Hold{Subject: l.nodeSubject(), Reason: r, Message: message, Until: end})
	}
	if h, refused := l.replacementLimit(); refused {
		return hold(h)
	}
	return l.move(TriggerHealthTimeout, func(s *v1alpha1.MachineStatus) {
		s.LastOperation = l.operation(s.LastOperation.Type, v1alpha1.MachineStateFailed, fmt.Sprintf(
			"Machine %s health checks failing since last %s minutes. Updating machine phase to Failed. Node Conditions: %s",
			l.m.Name, l.p.HealthTimeout, conditionList(bad)))
	})
}
