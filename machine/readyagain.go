// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

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
func ReadyAgain(m *v1alpha1.Machine, node NodeView, now time.Time) time.Time {
	if m == nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineFailed || !m.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	if node.NoTarget || !node.Looked || node.Node == nil || facts.Contradicts(m, node.Node) {
		return time.Time{}
	}
	failed, ready := m.Status.CurrentStatus.LastUpdateTime, facts.ConditionOf(node.Node.Status.Conditions, corev1.NodeReady)
	if !recorded.Known(failed.Time, now) || ready == nil || ready.Status != corev1.ConditionTrue ||
		!ready.LastTransitionTime.After(failed.Time) || facts.ConditionOf(node.Node.Status.Conditions, v1alpha1.NodeInPlaceUpdate) != nil {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// readyAgain reports whether a Failed machine becomes Running: its Node became Ready after the
// machine failed, and its critical components are ready.
func (l *logic) readyAgain() bool {
	node := l.ownNode()
	return node != nil && !criticalTaint(node) && recorded.Known(ReadyAgain(l.m, l.in.Node, l.now), l.now)
}

// readySoon returns the next check of a Failed machine whose Node became Ready at a time up to a
// minute after now. Zero means none.
func (l *logic) readySoon() time.Time {
	at := ReadyAgain(l.m, l.in.Node, l.now)
	if !at.After(l.now) || at.After(l.now.Add(time.Minute)) {
		return time.Time{}
	}
	return at
}
