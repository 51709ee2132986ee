// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
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
	keep, forget := facts.JudgePreservation(value, l.phase(), facts.PreservedUntil(l.m), l.now)
	if keep {
		return l.preserve(value)
	}
	return l.stopPreserving(forget)
}

// preservationUnknown waits for the Node, whose annotations may preserve the machine, if the
// machine has a record of a preservation.
func (l *logic) preservationUnknown() Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil && facts.LastApplied(l.m) == "" &&
		!facts.IsPreserveValue(l.m.Annotations[v1alpha1.PreserveMachineAnnotationKey]) {
		return Decision{}
	}
	if l.m.Labels[v1alpha1.NodeLabelKey] == "" {
		return hold(l.until(l.nodeSubject(), ReasonNotObserved, "the name of the node, which may have the preserve annotation, is not known", time.Minute))
	}
	return l.notObserved(l.nodeSubject(), "its preserve annotation was not read")
}

// preserve begins or continues the preservation for a value of the annotation.
func (l *logic) preserve(value string) Decision {
	if l.m.Status.CurrentStatus.PreserveExpiryTime == nil {
		end := facts.PreserveEnd(l.now, l.p.PreserveTimeout)
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
	healthy, _ := facts.JudgeHealth(node.Status.Conditions, l.p.HealthConditions)
	return healthy && l.moves(reasonNodeReady)
}

// keepPreserved waits for the end of the preservation.
func (l *logic) keepPreserved() Decision {
	h := machinist.Hold{Subject: "machine/" + l.m.Name, Reason: reasonPreserved, Message: "without end"}
	if end := facts.PreservedUntil(l.m); end.Before(facts.NoEnd) {
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
		stale := facts.StaleCondition(node, active)
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
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, applied, says)
	return l.write(m, "preserve annotation of the node: "+says, reasonPreserved)
}

// The annotations that keep the autoscaler from removing a Node.
const (
	scaleDownDisabled = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	scaleDownByMCM    = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
)

// preservedNode returns the Node with the marks of a preservation, or nil if it has them. The
// annotations keep the autoscaler from removing it. The Node of a Failed machine has the taint,
// before its drain. The Node of a Running machine does not. Values of the node template stay.
func (l *logic) preservedNode(node *corev1.Node) *corev1.Node {
	want, retaint := node.DeepCopy(), false
	switch phase := l.phase(); {
	case phase == v1alpha1.MachineFailed:
		t := facts.PreservedTaint
		t.TimeAdded = &metav1.Time{Time: l.now}
		want.Spec.Taints, retaint = nodeops.SetTaint(want.Spec.Taints, t)
	case phase == v1alpha1.MachineRunning && !l.templatedTaint():
		want.Spec.Taints, retaint = nodeops.RemoveTaint(want.Spec.Taints, facts.PreservedTaint)
	}
	if node.Annotations[scaleDownDisabled] != "true" && !l.templated(scaleDownDisabled) {
		facts.Hold(want)
	} else if !retaint {
		return nil
	}
	return want
}

// releasedNode returns the Node without the marks of a preservation, or nil if it has none. With
// forget the annotation that asks for a preservation is removed, too. The annotations for the
// autoscaler may be those of a rollout. They are removed only if was, or if the taint shows a
// preservation.
func (l *logic) releasedNode(node *corev1.Node, forget, was bool) *corev1.Node {
	var drop []string
	untaint := nodeops.HasTaint(node.Spec.Taints, facts.PreservedTaint) && !l.templatedTaint()
	if (was || untaint) && node.Annotations[scaleDownByMCM] == "true" && !l.templated(scaleDownByMCM) {
		drop = []string{scaleDownByMCM, scaleDownDisabled}
	}
	if value := node.Annotations[v1alpha1.PreserveMachineAnnotationKey]; forget && facts.IsPreserveValue(value) &&
		!l.templated(v1alpha1.PreserveMachineAnnotationKey) {
		drop = append(drop, v1alpha1.PreserveMachineAnnotationKey)
	}
	if len(drop) == 0 && !untaint {
		return nil
	}
	node = node.DeepCopy()
	for _, key := range drop {
		delete(node.Annotations, key)
	}
	if untaint {
		node.Spec.Taints, _ = nodeops.RemoveTaint(node.Spec.Taints, facts.PreservedTaint)
	}
	return node
}

// templated reports whether the node template sets an annotation.
func (l *logic) templated(key string) bool {
	_, found := l.m.Spec.NodeTemplateSpec.Annotations[key]
	return found
}

// templatedTaint reports whether the node template sets the taint of preserved Nodes.
func (l *logic) templatedTaint() bool {
	return nodeops.HasTaint(l.m.Spec.NodeTemplateSpec.Spec.Taints, facts.PreservedTaint)
}

// showPreserved sets the condition Preserved of the Node. The Node of a Failed machine is drained
// first. If the drain takes long, the condition says so.
func (l *logic) showPreserved(node *corev1.Node, value string) Decision {
	want, rest := l.preservedCondition(value), l.keepPreserved()
	if l.phase() == v1alpha1.MachineFailed {
		a := l.preservationDrain(node)
		switch d := l.drainPreserved(node, a); {
		case d.Action != nil:
			return d
		case d.Reason == "":
			want.Message = v1alpha1.PreservedNodeDrainSuccessful + " " + want.Message
		default:
			rest.Reason, rest.Message = d.Reason, d.Message
			rest.Holds, rest.NextCheck = append(d.Holds, rest.Holds...), machinist.Earliest(rest.NextCheck, d.NextCheck)
			if l.now.Before(a.Started.Add(reportAfter)) {
				return rest
			}
			want.Status, want.Message = corev1.ConditionFalse, v1alpha1.PreservedNodeDrainUnsuccessful+" "+want.Message
		}
	}
	if facts.SameState(facts.ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved), &want) {
		return rest
	}
	d := l.writeCondition(want, reasonPreserved)
	d.Message = want.Message
	return d
}

// preservedCondition returns the condition of a Node that is preserved.
func (l *logic) preservedCondition(value string) corev1.NodeCondition {
	reason := v1alpha1.PreservedByUser
	if value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM {
		reason = v1alpha1.PreservedByMCM
	}
	message := fmt.Sprintf("Machine preserved until %s.", facts.PreservedUntil(l.m).UTC())
	return facts.Condition(v1alpha1.NodePreserved, corev1.ConditionTrue, reason, message, l.now)
}

// stoppedCondition returns the condition of a Node that is no longer preserved.
func (l *logic) stoppedCondition() corev1.NodeCondition {
	return facts.Condition(v1alpha1.NodePreserved, corev1.ConditionFalse, v1alpha1.PreservationStopped, "", l.now)
}

// drainPreserved drains the Node of a preserved Failed machine. It returns the next pass, the holds
// of the last one, or the zero Decision when the drain has ended.
func (l *logic) drainPreserved(node *corev1.Node, a DrainNode) Decision {
	if facts.PreservedAndDrained(node) || l.in.Drain.of(a).Done {
		return Decision{}
	}
	if facts.PreservationDrainStarted(l.m, node, l.now).IsZero() { // the drain begins now
		return l.resetPhaseTime(reasonPreserved)
	}
	long := a.Started.Add(reportAfter) // when the condition says that the drain takes long
	if !l.now.Before(long) {
		long = time.Time{}
	}
	if facts.UpdateStep(node) == v1alpha1.SelectedForUpdate { // two drains of one Node would alternate without end
		d := hold(machinist.Hold{Subject: "node/" + node.Name, Reason: reasonInPlaceUpdate, Message: "it is drained for its in-place update first"})
		d.NextCheck = long
		return d
	}
	due, next := l.passDue(node, a)
	if due {
		return l.do(a, reasonDraining, "for its preservation")
	}
	return l.drainWaits(a, machinist.Earliest(next, long))
}
