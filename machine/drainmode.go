// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// notReadyForLong is how long a Node may be out of reach before waiting for it
// to stop pods makes no sense; it is that of the reference system.
const notReadyForLong = 5 * time.Minute

// DrainModeFor returns how the Node of a machine that is being deleted is
// drained: the drain is forced when the drain timeout has passed since the
// deletion was asked for, or at once if the label force-deletion says so. A
// Node that has not been ready for five minutes, or whose file system has been
// read-only for as long, does not stop its pods.
//
// A nil machine or node is drained without force.
func DrainModeFor(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	var mode DrainMode
	if m == nil {
		return mode
	}
	p = p.forMachine(m)
	mode.Started = now
	if !m.DeletionTimestamp.IsZero() {
		mode.Started = m.DeletionTimestamp.Time
	}
	if p.DrainTimeout > 0 {
		mode.ForceAt = mode.Started.Add(p.DrainTimeout)
	}
	if force, err := strconv.ParseBool(m.Labels[v1alpha1.LabelKeyForceDeletion]); err == nil && force {
		mode.ForceAt = mode.Started
	}
	if node != nil {
		mode.NodeUnreachable = unreachable(node.Status.Conditions, now)
	}
	return mode
}

func unreachable(conditions []corev1.NodeCondition, now time.Time) bool {
	for _, c := range conditions {
		bad := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type == "ReadonlyFilesystem" && c.Status != corev1.ConditionFalse
		if bad && !c.LastTransitionTime.IsZero() && now.Sub(c.LastTransitionTime.Time) > notReadyForLong {
			return true
		}
	}
	return false
}

// WatchesPods says whether a change of the pods on its Node can matter to a
// machine: only while it is being deleted. A caller that is told of every pod of
// a cluster need not look at the others. A nil machine watches none.
func WatchesPods(m *v1alpha1.Machine) bool { return m != nil && !m.DeletionTimestamp.IsZero() }
