// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A NodeView is what a decision has to know about the Node of a machine. The
// zero NodeView is that of a Node which was looked for and does not exist, or
// of a cluster without Nodes. Not having looked is the absence of a NodeView.
type NodeView struct {
	// Found reports that the Node exists.
	Found bool
	// Preserve is the value of its preserve annotation; one that means nothing is as
	// good as none.
	Preserve string
}

// ViewNode returns the view of a Node; nil means that it was looked for and does
// not exist.
func ViewNode(node *corev1.Node) NodeView {
	if node == nil {
		return NodeView{}
	}
	view := NodeView{Found: true}
	value, found := node.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	switch value {
	case v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse:
		view.Preserve = value
	case "":
		if found { // which asks to stop, as for package machine
			view.Preserve = v1alpha1.PreserveMachineAnnotationValueFalse
		}
	}
	return view
}

// ReplaceFailed decides whether a Failed machine is deleted, so that another
// takes its place. The node is that which the machine's label names; nil means
// that nobody has looked. The rules are, in this order:
//
//  1. Preserved, and its time is not over: it stays ([ReasonPreserved]).
//  2. Preserved, and its time is over: it goes ([ReasonPreservationOver]).
//  3. It has a Node that nobody has looked at: it stays ([ReasonNodeUnknown]).
//  4. The value in force asks for preservation (now, when-failed or
//     auto-preserved): it stays, as the machine controller is about to preserve
//     it ([ReasonPreservationAsked]).
//  5. It goes ([ReasonFailed]).
//
// The value in force is that of the Node if the Node, or the last value of the
// Node that was acted on, says anything; else that of the machine. If the Node
// is gone, it is that of the machine, as for the machine controller; the
// reference system's set controller lets such a machine go whatever it asks.
//
// A machine that is not Failed, or nil, stays, for no reason.
func ReplaceFailed(m *v1alpha1.Machine, node *NodeView, now time.Time) (bool, Reason) {
	if !Failed(m) {
		return false, ""
	}
	switch {
	case Preserved(m, now):
		return false, ReasonPreserved
	case PreservedFailed(m):
		return true, ReasonPreservationOver
	case m.Labels[v1alpha1.NodeLabelKey] != "" && node == nil:
		return false, ReasonNodeUnknown
	case asksForPreservation(preserveValue(m, node)):
		return false, ReasonPreservationAsked
	default:
		return true, ReasonFailed
	}
}

// preserveValue returns the value of the preserve annotation that is in force.
func preserveValue(m *v1alpha1.Machine, node *NodeView) string {
	switch {
	case !overruled(m, node):
		return m.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	case m.Labels[v1alpha1.NodeLabelKey] == "" || node == nil:
		return ""
	default:
		return node.Preserve
	}
}

// overruled reports whether the value of the Node is in force, even if empty,
// rather than that of the machine.
func overruled(m *v1alpha1.Machine, node *NodeView) bool {
	hasNode := m.Labels[v1alpha1.NodeLabelKey] != ""
	if hasNode && (node == nil || !node.Found) {
		return false
	}
	return hasNode && node.Preserve != "" || m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey] != ""
}

func asksForPreservation(value string) bool {
	switch value {
	case v1alpha1.PreserveMachineAnnotationValueNow,
		v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		v1alpha1.PreserveMachineAnnotationValuePreservedByMCM:
		return true
	default:
		return false
	}
}
