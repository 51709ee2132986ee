// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// preservedTaint is the taint that keeps pods off the Node of a preserved Failed machine.
var preservedTaint = corev1.Taint{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule}

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
		t := preservedTaint
		t.TimeAdded = &metav1.Time{Time: l.now}
		want.Spec.Taints, retaint = nodeops.SetTaint(want.Spec.Taints, t)
	case phase == v1alpha1.MachineRunning && !l.templatedTaint():
		want.Spec.Taints, retaint = nodeops.RemoveTaint(want.Spec.Taints, preservedTaint)
	}
	if node.Annotations[scaleDownDisabled] != "true" && !l.templated(scaleDownDisabled) {
		want.Annotations = withKey(withKey(want.Annotations, scaleDownDisabled, "true"), scaleDownByMCM, "true")
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
	untaint := nodeops.HasTaint(node.Spec.Taints, preservedTaint) && !l.templatedTaint()
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
		node.Spec.Taints, _ = nodeops.RemoveTaint(node.Spec.Taints, preservedTaint)
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
	return nodeops.HasTaint(l.m.Spec.NodeTemplateSpec.Spec.Taints, preservedTaint)
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
	have := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	if have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
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
	return facts.Condition(v1alpha1.NodePreserved, corev1.ConditionTrue, reason, fmt.Sprintf("Machine preserved until %s.", l.preservedUntil().UTC()), l.now)
}

// stoppedCondition returns the condition of a Node that is no longer preserved.
func (l *logic) stoppedCondition() corev1.NodeCondition {
	return facts.Condition(v1alpha1.NodePreserved, corev1.ConditionFalse, v1alpha1.PreservationStopped, "", l.now)
}

// staleCondition reports whether the condition of a Node that is not preserved has to be written.
// active means that the preservation is recorded. A Node that was not preserved needs no condition.
func staleCondition(node *corev1.Node, active bool) bool {
	c := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	if c == nil {
		return active
	}
	return c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.PreservationStopped
}

// preservedAndDrained reports whether the condition Preserved of a Node, written by this package or
// MCM, says that the Node was drained. It is false for nil.
func preservedAndDrained(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	c := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	return c != nil && strings.HasPrefix(c.Message, v1alpha1.PreservedNodeDrainSuccessful)
}

// drainPreserved drains the Node of a preserved Failed machine. It returns the next pass, the holds
// of the last one, or the zero Decision when the drain has ended.
func (l *logic) drainPreserved(node *corev1.Node, a DrainNode) Decision {
	if preservedAndDrained(node) || l.in.Drain.of(a).Done {
		return Decision{}
	}
	if preservationDrainStarted(l.m, node, l.now).IsZero() { // the drain begins now
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

// preservationDrainStarted returns when the drain of a preserved Failed machine began: the later of
// the change to phase Failed and the time of the taint. Both are written once. Times in the future
// are ignored. Zero means that neither is known.
func preservationDrainStarted(m *v1alpha1.Machine, node *corev1.Node, now time.Time) time.Time {
	times := []*metav1.Time{&m.Status.CurrentStatus.LastUpdateTime}
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&preservedTaint) {
			times = append(times, t.TimeAdded)
		}
	}
	var started time.Time
	for _, t := range times {
		if t != nil && t.After(started) && recorded.Known(t.Time, now) {
			started = t.Time
		}
	}
	return started
}
