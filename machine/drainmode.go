// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
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
// As long as it is not forced, and the Node answers, the volumes of the pods that go
// are to be detached before the VM is deleted; those of pods that stay, such as
// those of a DaemonSet, are attached until then. Other drains leave the VM, so they
// wait for no volume.
//
// The deadline alone rules: spec.maxEvictRetries is accepted and has no effect. In
// the reference system it is another deadline, of 20 seconds for each retry, after
// which pods lose their grace and their budgets; whoever wants that sets
// spec.drainTimeout.
//
// A nil machine or node is drained without force.
func DrainModeFor(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	if m == nil {
		return DrainMode{}
	}
	started := now
	switch written := m.Status.CurrentStatus; {
	case m.DeletionTimestamp.IsZero():
	case recorded.Known(m.DeletionTimestamp.Time, now):
		started = m.DeletionTimestamp.Time
	case written.Phase == v1alpha1.MachineTerminating && recorded.Known(written.LastUpdateTime.Time, now):
		started = written.LastUpdateTime.Time
	}
	mode := drainMode(m, node, p, now, started, forcesDeletion(m))
	if !mode.forced(now) && !mode.NodeUnreachable { // else nobody unmounts
		mode.Detach, mode.DetachTimeout = true, max(p.DetachTimeout, 0)
	}
	return mode
}

// DrainModeForUpdate returns how a Node is drained that was selected for an update
// in place: as for a deletion, but counted from when the condition InPlaceUpdate
// said so, and forced at once if the label force-drain of the machine is True. If
// the Node was not selected, the drain begins now.
//
// A nil machine or node is drained without force.
func DrainModeForUpdate(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	if m == nil {
		return DrainMode{}
	}
	started := now
	if node != nil {
		c := conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate)
		if c != nil && c.Reason == v1alpha1.SelectedForUpdate && recorded.Known(c.LastTransitionTime.Time, now) {
			started = c.LastTransitionTime.Time
		}
	}
	return drainMode(m, node, p, now, started, forcesDrain(m))
}

// DrainModeForPreservation returns how the Node of a machine is drained that has
// failed and is preserved: as for an update in place, but without cordon, as the
// taint of preserved Nodes keeps pods away, and counted from the later of the
// change to phase Failed and the time at which the Node was tainted. Both are
// written once, so that nothing puts the deadline off. Without either, the drain
// begins now.
//
// A nil machine or node is drained without force.
func DrainModeForPreservation(m *v1alpha1.Machine, node *corev1.Node, p Policy, now time.Time) DrainMode {
	if m == nil {
		return DrainMode{KeepSchedulable: true}
	}
	started := preservationDrainStarted(m, node, now)
	if started.IsZero() {
		started = now
	}
	mode := drainMode(m, node, p, now, started, forcesDrain(m))
	mode.KeepSchedulable = true
	return mode
}

// forcesDeletion says whether somebody forces the deletion of a machine.
func forcesDeletion(m *v1alpha1.Machine) bool {
	force, err := strconv.ParseBool(m.Labels[v1alpha1.LabelKeyForceDeletion])
	return err == nil && force
}

// forceDrain is the one value of [v1alpha1.LabelKeyForceDrain] that forces.
const forceDrain = "True"

// forcesDrain says whether somebody forces the drains of a machine that stays.
func forcesDrain(m *v1alpha1.Machine) bool {
	return m.Labels[v1alpha1.LabelKeyForceDrain] == forceDrain
}

// drainMode returns the mode of a drain that was wanted first at started.
func drainMode(m *v1alpha1.Machine, node *corev1.Node, p Policy, now, started time.Time, force bool) DrainMode {
	mode := DrainMode{Started: started}
	if timeout := p.forMachine(m).DrainTimeout; timeout > 0 {
		mode.ForceAt = started.Add(timeout)
	}
	if force {
		mode.ForceAt = started
	}
	if node != nil {
		from := unreachableFrom(node.Status.Conditions)
		if mode.NodeUnreachable = !from.IsZero() && now.After(from); mode.NodeUnreachable {
			mode.UnreachableSince = from.Add(-notReadyForLong)
		}
	}
	return mode
}

// unreachableFrom returns after when a Node whose conditions stay as they are does
// not stop its pods any more, or zero for never.
func unreachableFrom(conditions []corev1.NodeCondition) time.Time {
	var from time.Time
	for _, c := range conditions {
		bad := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type == "ReadonlyFilesystem" && c.Status != corev1.ConditionFalse
		if bad && !c.LastTransitionTime.IsZero() {
			from = machinist.Earliest(from, c.LastTransitionTime.Add(notReadyForLong))
		}
	}
	return from
}

// roundDue says whether a round of the drain is due, and otherwise when the next
// one will be. The time of force, and that after which the Node counts as
// unreachable, are reason for a round of their own.
func (l *logic) roundDue(node *corev1.Node, mode DrainMode) (bool, time.Time) {
	round := l.in.Drain.of(mode)
	next := round.NextCheck
	if !mode.forced(l.now) && !mode.ForceAt.IsZero() {
		next = machinist.Earliest(next, mode.ForceAt)
	}
	if from := unreachableFrom(node.Status.Conditions); !from.IsZero() && !round.Round.After(from) {
		next = machinist.Earliest(next, from.Add(time.Nanosecond))
	}
	unforced := mode.forced(l.now) && round.ForcedAt.IsZero() && (!round.Started.IsZero() || round.Round.Before(mode.ForceAt))
	return !recorded.Known(round.Round, l.now) || unforced || !next.IsZero() && !l.now.Before(next), next
}

// drainWaits waits for what the last round of the drain waits for.
func (l *logic) drainWaits(node *corev1.Node, mode DrainMode, next time.Time) Decision {
	d := Decision{Reason: ReasonDraining, Holds: slices.Clone(l.in.Drain.of(mode).Holds), NextCheck: next}
	if len(d.Holds) == 0 {
		d.Holds = []machinist.Hold{{Subject: "node/" + node.Name, Reason: ReasonDraining, Until: next}}
	}
	return d
}

// Drains says whether the pods of its Node matter to a machine now: while it is
// being deleted, while its Node is selected for an update in place and not yet
// drained, and while it is preserved, has failed, and its Node is not drained for
// that yet. Only then has it to be looked at because something on its Node has
// changed: pods, volumes, or the budgets of the pods. For a nil machine they never do; a
// nil Node has no pods, except perhaps those of a machine that is being deleted.
func Drains(m *v1alpha1.Machine, node *corev1.Node) bool {
	switch {
	case m == nil:
		return false
	case !m.DeletionTimestamp.IsZero():
		return true
	case node == nil:
		return false
	case updateStep(node) == v1alpha1.SelectedForUpdate:
		return true
	default:
		status := m.Status.CurrentStatus
		return status.Phase == v1alpha1.MachineFailed && status.PreserveExpiryTime != nil && !PreservedAndDrained(node)
	}
}
