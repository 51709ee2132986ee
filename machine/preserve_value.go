// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// PreserveValue returns the value of the preserve annotation that is in force for
// a machine: now, when-failed, auto-preserved, false, or nothing. It is false if
// that cannot be told. The rules are, in this order:
//
//  1. Without a cluster to join, it is that of the machine.
//  2. A machine on which a value of its Node was once acted on, and whose Node has
//     no name any more: it cannot be told.
//  3. A machine that names no Node, or whose Node does not exist: that of the
//     machine.
//  4. The Node was not read: the value is unknown.
//  5. The Node has the annotation: that of the Node, also if it is empty, which
//     asks to stop.
//  6. A value of the Node was once acted on: nothing, as the Node has it no more.
//  7. That of the machine.
//
// A value that is none of these counts as no annotation: it neither begins a
// preservation nor keeps one from ending. In MCM such a value on
// the Node, and an empty one, keep everything as it is, for ever.
//
// A nil machine asks for nothing that could be told.
func PreserveValue(m *v1alpha1.Machine, node NodeView) (value string, known bool) {
	if m == nil {
		return "", false
	}
	own, applied := m.Annotations[v1alpha1.PreserveMachineAnnotationKey], lastApplied(m)
	if !preserveValue(own) {
		own = ""
	}
	named := m.Labels[v1alpha1.NodeLabelKey] != ""
	switch {
	case node.NoTarget:
		return own, true
	case !named && applied != "":
		return "", false
	case !named:
		return own, true
	case !node.Looked:
		return "", false
	case node.Node == nil || foreignNode(m, node.Node):
		return own, true
	}
	if value, says := nodePreserveValue(node); says {
		return value, true
	}
	if applied != "" {
		return "", true
	}
	return own, true
}

// lastApplied returns the last value of the Node that was acted on.
func lastApplied(m *v1alpha1.Machine) string {
	return m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey]
}

// nodePreserveValue returns what the Node says of preservation, and false if it says
// nothing that is understood.
func nodePreserveValue(node NodeView) (string, bool) {
	value, found := node.Node.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	if value != "" && !preserveValue(value) {
		return "", false
	}
	return value, found
}

// preserveValues are the values of the annotation that are understood.
var preserveValues = []string{
	v1alpha1.PreserveMachineAnnotationValueNow, v1alpha1.PreserveMachineAnnotationValueWhenFailed,
	v1alpha1.PreserveMachineAnnotationValuePreservedByMCM, v1alpha1.PreserveMachineAnnotationValueFalse,
}

func preserveValue(value string) bool { return slices.Contains(preserveValues, value) }

// WillPreserve reports whether [Decide] begins a preservation of a Failed machine, by its
// annotations and those of its Node. It is false if the Node was not looked for.
func WillPreserve(m *v1alpha1.Machine, node NodeView, now time.Time) bool {
	value, known := PreserveValue(m, node)
	keep, _ := judgePreservation(value, v1alpha1.MachineFailed, time.Time{}, now)
	return known && keep
}

// judgePreservation returns whether a preservation begins or goes on, and otherwise
// whether its request is removed, so that it does not begin anew. value is that of the
// annotation. A preservation is over from its recorded end on. A zero end is none.
//
//	value          | not Failed      | Failed | over
//	now            | keep            | keep   | stop and forget
//	when-failed    | stop            | keep   | stop and forget
//	auto-preserved | stop and forget | keep   | stop and forget
//	false, others  | stop            | stop   | stop
func judgePreservation(value string, phase v1alpha1.MachinePhase, end, now time.Time) (keep, forget bool) {
	over, failed := !end.IsZero() && !now.Before(end), phase == v1alpha1.MachineFailed
	switch {
	case value == v1alpha1.PreserveMachineAnnotationValueFalse, !preserveValue(value):
		return false, false
	case over, value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM && !failed:
		return false, true
	default:
		return failed || value == v1alpha1.PreserveMachineAnnotationValueNow, false
	}
}

// forEver is the end of a preservation that has none: the last second that all
// readers of the API can read.
var noEnd = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// preserveEnd returns when a preservation ends that begins at start and lasts for
// so long, without fractions of a second, as the API server drops them. What
// lasts for zero or less has no end, which is recorded as the last second of the
// year 9999.
func preserveEnd(start time.Time, lasts time.Duration) time.Time {
	if lasts <= 0 {
		return noEnd
	}
	return start.Add(lasts).Truncate(time.Second)
}
