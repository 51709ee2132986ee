// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// forcedDrain is how long a drain by force may fail before the deletion goes on
// without it; it is that of MCM.
const forcedDrain = time.Minute

// deletionDrain returns how the Node of a machine that is being deleted is drained. The
// drain is forced when the drain timeout has passed since the deletion was asked for, or
// at once by the label force-deletion. The Node is unreachable when it has not been ready
// for five minutes, or its file system has been read-only for as long.
//
// While the drain is not forced and the Node answers, the volumes of the pods that go are
// detached before the VM is deleted. Other drains leave the VM, and wait for no volume.
//
// spec.maxEvictRetries has no effect. In MCM it is another deadline, of
// 20 seconds for each retry; spec.drainTimeout says the same.
func (l *logic) deletionDrain(node *corev1.Node) DrainNode {
	started := l.now
	switch written := l.m.Status.CurrentStatus; {
	case l.m.DeletionTimestamp.IsZero():
	case recorded.Known(l.m.DeletionTimestamp.Time, l.now):
		started = l.m.DeletionTimestamp.Time
	case written.Phase == v1alpha1.MachineTerminating && recorded.Known(written.LastUpdateTime.Time, l.now):
		started = written.LastUpdateTime.Time
	}
	a := l.drainSince(node, started, deletionForced(l.m))
	if !a.forced(l.now) && !a.unreachable() { // else nothing unmounts
		a.Policy.Volumes.Wait, a.Policy.Volumes.DetachTimeout = true, max(l.p.DetachTimeout, 0)
	}
	return a
}

// updateDrain returns how a Node is drained that was selected for an update in place: as
// for a deletion, but counted from when the condition InPlaceUpdate said so, and forced at
// once by the label force-drain of the machine.
func (l *logic) updateDrain(node *corev1.Node) DrainNode {
	started := l.now
	c := conditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate)
	if c != nil && c.Reason == v1alpha1.SelectedForUpdate && recorded.Known(c.LastTransitionTime.Time, l.now) {
		started = c.LastTransitionTime.Time
	}
	return l.drainSince(node, started, drainForced(l.m))
}

// preservationDrain returns how the Node of a Failed machine is drained that is preserved:
// as for an update in place, but without cordon, as the taint of preserved Nodes keeps
// pods away. It is counted from when it was first wanted.
func (l *logic) preservationDrain(node *corev1.Node) DrainNode {
	started := preservationDrainStarted(l.m, node, l.now)
	if started.IsZero() {
		started = l.now
	}
	a := l.drainSince(node, started, drainForced(l.m))
	a.Policy.KeepSchedulable = true
	return a
}

// drainSince returns a drain that was first wanted at started.
func (l *logic) drainSince(node *corev1.Node, started time.Time, force bool) DrainNode {
	a := DrainNode{Started: started}
	var forceAt time.Time
	switch {
	case force:
		forceAt = started
	case l.p.DrainTimeout > 0:
		forceAt = started.Add(l.p.DrainTimeout)
	}
	a.Policy = drain.ForMachine(forceAt)
	if node != nil {
		a.NodeName = node.Name
		if from := unreachableFrom(node.Status.Conditions); !from.IsZero() && l.now.After(from) {
			a.Reachability = drain.NodeReachability{Unreachable: true, Since: from.Add(-drain.UnreachableTimeout)}
		}
	}
	return a
}

// forceAt returns when the drain is forced. Zero means never.
func (a DrainNode) forceAt() time.Time { return a.Policy.EscalateFrom }

// forced reports whether the drain is forced. An unreachable Node forces its pods, but
// not the end of the drain.
func (a DrainNode) forced(now time.Time) bool {
	return !a.forceAt().IsZero() && !now.Before(a.forceAt())
}

func (a DrainNode) unreachable() bool { return a.Reachability.Unreachable }

// deletionForced reports whether the label force-deletion of a machine is true.
func deletionForced(m *v1alpha1.Machine) bool {
	force, err := strconv.ParseBool(m.Labels[v1alpha1.LabelKeyForceDeletion])
	return err == nil && force
}

// forceDrain is the one value of [v1alpha1.LabelKeyForceDrain] that forces.
const forceDrain = "True"

// drainForced reports whether the label force-drain forces the drains of a machine that stays.
func drainForced(m *v1alpha1.Machine) bool {
	return m.Labels[v1alpha1.LabelKeyForceDrain] == forceDrain
}

// unreachableFrom returns after when a Node whose conditions stay as they are does not
// stop its pods any more, or zero for never.
func unreachableFrom(conditions []corev1.NodeCondition) time.Time {
	var from time.Time
	for _, c := range conditions {
		bad := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type == "ReadonlyFilesystem" && c.Status != corev1.ConditionFalse
		if bad && !c.LastTransitionTime.IsZero() {
			from = machinist.Earliest(from, c.LastTransitionTime.Add(drain.UnreachableTimeout))
		}
	}
	return from
}

// After returns the view after a pass of package drain that was made at now for a, and
// returned s and d. A pass that failed counts too: force comes to its end also where the
// API server of the Node does not answer.
func (v DrainView) After(a DrainNode, s drain.State, d drain.Decision, now time.Time) DrainView {
	return v.after(a, DrainView{State: s, Done: d.Over(), Holds: d.Holds(), NextCheck: d.NextCheck}, now)
}

func (v DrainView) after(a DrainNode, next DrainView, now time.Time) DrainView {
	v = v.of(a)
	next.Started, next.ForceAt, next.KeepSchedulable = a.Started, a.forceAt(), a.Policy.KeepSchedulable
	next.Round, next.DoneAt, next.ForcedAt = now, v.DoneAt, v.ForcedAt
	if next.Done && !recorded.Known(next.DoneAt, now) {
		next.DoneAt = now
	}
	if !recorded.Known(next.ForcedAt, now) && a.forced(now) {
		next.ForcedAt = now
	}
	return next
}

// Again returns the view that asks for a new pass of the same drain, since pods may have
// changed. A caller begins with it.
func (v DrainView) Again() DrainView {
	v.Round, v.Done, v.Holds, v.NextCheck = time.Time{}, false, nil, time.Time{}
	return v
}

// StateFor returns the state for the next pass of a drain: zero if the view is of another
// drain, which began at another time or for another reason, or has another time of force.
func (v DrainView) StateFor(a DrainNode) drain.State { return v.of(a).State }

// of returns what the view says of a drain.
func (v DrainView) of(a DrainNode) DrainView {
	if v.Started.IsZero() ||
		v.Started.Equal(a.Started) && v.ForceAt.Equal(a.forceAt()) && v.KeepSchedulable == a.Policy.KeepSchedulable {
		return v
	}
	return DrainView{}
}

// endedAt returns since when nothing is left to wait for, or false if something is: a drain
// is over when it is done, and a minute after it was first made by force.
func (v DrainView) endedAt(a DrainNode, now time.Time) (time.Time, bool) {
	if v.Done {
		if v.DoneAt.IsZero() {
			return v.Round, true
		}
		return v.DoneAt, true
	}
	end := v.forceEnds(a, now)
	return end, !end.IsZero() && !now.Before(end)
}

// forceEnds returns when the drain by force is given up, or zero if it is not forced.
func (v DrainView) forceEnds(a DrainNode, now time.Time) time.Time {
	if v.ForcedAt.IsZero() || !a.forced(now) {
		return time.Time{}
	}
	return v.ForcedAt.Add(forcedDrain)
}

// passDue reports whether a pass of the drain is due, and otherwise when the next
// one will be. The time of force, and that after which the Node counts as
// unreachable, are reason for a pass of their own.
func (l *logic) passDue(node *corev1.Node, a DrainNode) (bool, time.Time) {
	round := l.in.Drain.of(a)
	next := round.NextCheck
	if !a.forced(l.now) && !a.forceAt().IsZero() {
		next = machinist.Earliest(next, a.forceAt())
	}
	if from := unreachableFrom(node.Status.Conditions); !from.IsZero() && !round.Round.After(from) {
		next = machinist.Earliest(next, from.Add(time.Nanosecond))
	}
	unforced := a.forced(l.now) && round.ForcedAt.IsZero() && (!round.Started.IsZero() || round.Round.Before(a.forceAt()))
	return !recorded.Known(round.Round, l.now) || unforced || !next.IsZero() && !l.now.Before(next), next
}

// drainWaits waits for what the last pass of the drain waits for.
func (l *logic) drainWaits(a DrainNode, next time.Time) Decision {
	d := Decision{Reason: ReasonDraining, Holds: slices.Clone(l.in.Drain.of(a).Holds), NextCheck: next}
	if len(d.Holds) == 0 {
		d.Holds = []machinist.Hold{{Subject: "node/" + a.NodeName, Reason: ReasonDraining, Until: next}}
	}
	return d
}

// Drains reports whether the pods of its Node matter to a machine now: while it is being
// deleted, while its Node is selected for an update in place and not yet drained, and
// while it is preserved, has failed, and its Node is not drained for that yet. Only then a
// change on the Node matters: of pods, volumes, or the budgets of the pods. For a nil
// machine they never do. A nil Node has pods only for a machine that is being deleted.
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
		return status.Phase == v1alpha1.MachineFailed && status.PreserveExpiryTime != nil && !preservedAndDrained(node)
	}
}
