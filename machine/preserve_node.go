// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// What the message of the condition Preserved says of the Node of a machine that
// failed. These are words that others read.
const (
	preservedDrained    = "Preserved node drained successfully."
	preservedNotDrained = "Preserved node could not be drained."
)

// preservedTaint keeps pods off the Node of a preserved machine that failed.
var preservedTaint = corev1.Taint{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule}

// The two annotations that keep the autoscaler from removing a Node.
const (
	scaleDownDisabled = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	scaleDownByMCM     = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
)

// preservedNode returns the Node with what a preservation puts on it, or nil if it
// has that already: the autoscaler is told to leave it alone; one that failed is
// tainted before it is drained, and no longer tainted when it runs again. What
// the node template sets is left as it says.
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

// releasedNode returns the Node without what a preservation has put on it, or nil
// if there is nothing of that. With forget it asks for preservation no more. The
// annotations that keep the autoscaler away are also those of a roll-out, and go
// only if it is known, by was or by the taint, that the Node was preserved.
func (l *logic) releasedNode(node *corev1.Node, forget, was bool) *corev1.Node {
	var drop []string
	untaint := nodeops.HasTaint(node.Spec.Taints, preservedTaint) && !l.templatedTaint()
	if (was || untaint) && node.Annotations[scaleDownByMCM] == "true" && !l.templated(scaleDownByMCM) {
		drop = []string{scaleDownByMCM, scaleDownDisabled}
	}
	if value := node.Annotations[v1alpha1.PreserveMachineAnnotationKey]; forget && preserveValue(value) &&
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

// templated says whether the node template sets an annotation, so that it would
// be put back.
func (l *logic) templated(key string) bool {
	_, found := l.m.Spec.NodeTemplateSpec.Annotations[key]
	return found
}

// templatedTaint says whether the node template sets the taint of preserved Nodes.
func (l *logic) templatedTaint() bool {
	return nodeops.HasTaint(l.m.Spec.NodeTemplateSpec.Spec.Taints, preservedTaint)
}

// showPreserved says on the Node that it is preserved. The Node of a machine that
// failed is drained first; if that takes long, the Node says so.
func (l *logic) showPreserved(node *corev1.Node, value string) Decision {
	want, rest := l.preservedCondition(value), l.keepPreserved()
	if l.phase() == v1alpha1.MachineFailed {
		a := l.preservationDrain(node)
		switch d := l.drainPreserved(node, a); {
		case d.Action != nil:
			return d
		case d.Reason == "":
			want.Message = preservedDrained + " " + want.Message
		default:
			rest.Reason, rest.Message = d.Reason, d.Message
			rest.Holds, rest.NextCheck = append(d.Holds, rest.Holds...), machinist.Earliest(rest.NextCheck, d.NextCheck)
			if l.now.Before(a.Started.Add(reportAfter)) {
				return rest
			}
			want.Status, want.Message = corev1.ConditionFalse, preservedNotDrained+" "+want.Message
		}
	}
	have := conditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	if have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return rest
	}
	return l.do(SetNodeCondition{NodeName: node.Name, Condition: want}, ReasonPreserved, want.Message)
}

// preservedCondition is the condition of a Node that is preserved.
func (l *logic) preservedCondition(value string) corev1.NodeCondition {
	reason := v1alpha1.PreservedByUser
	if value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM {
		reason = v1alpha1.PreservedByMCM
	}
	return condition(v1alpha1.NodePreserved, corev1.ConditionTrue, reason, fmt.Sprintf("Machine preserved until %s.", l.preservedUntil().UTC()), l.now)
}

// stoppedCondition is the condition of a Node that is preserved no more.
func (l *logic) stoppedCondition() corev1.NodeCondition {
	return condition(v1alpha1.NodePreserved, corev1.ConditionFalse, v1alpha1.PreservationStopped, "", l.now)
}

// staleCondition says whether the condition of a Node that is not preserved any
// more has to say so. One that never was needs no condition.
func staleCondition(node *corev1.Node, active bool) bool {
	c := conditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	if c == nil {
		return active
	}
	return c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.PreservationStopped
}

// preservedAndDrained reports whether the condition Preserved of a Node tells that it
// was drained for its preservation, as this package and MCM
// write it. A nil Node was not.
func preservedAndDrained(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	c := conditionOf(node.Status.Conditions, v1alpha1.NodePreserved)
	return c != nil && strings.HasPrefix(c.Message, preservedDrained)
}

// drainPreserved drains the Node of a preserved machine that failed: it returns the
// next round, or what the last one waits for, and nothing when that is over.
func (l *logic) drainPreserved(node *corev1.Node, a DrainNode) Decision {
	if preservedAndDrained(node) || l.in.Drain.of(a).Done {
		return Decision{}
	}
	if preservationDrainStarted(l.m, node, l.now).IsZero() { // the drain begins now
		return l.resetPhaseTime(ReasonPreserved)
	}
	long := a.Started.Add(reportAfter) // when the Node tells that the drain takes long
	if !l.now.Before(long) {
		long = time.Time{}
	}
	if updateStep(node) == v1alpha1.SelectedForUpdate { // two drains of one Node would take turns without end
		d := hold(machinist.Hold{Subject: "node/" + node.Name, Reason: ReasonInPlaceUpdate, Message: "it is drained for its update in place first"})
		d.NextCheck = long
		return d
	}
	due, next := l.passDue(node, a)
	if due {
		return l.do(a, ReasonDraining, "for its preservation")
	}
	return l.drainWaits(a, machinist.Earliest(next, long))
}

// preservationDrainStarted returns when the drain of a preserved machine that
// failed was first wanted: the later of the change to phase Failed and the time at
// which the Node was tainted for it, which are written once.
// A time in the future is passed over; zero means that neither is known.
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
