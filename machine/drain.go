// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// forcedDrain is how long a forced drain may fail before the deletion continues. It is that of MCM.
const forcedDrain = time.Minute

// unreachableTimeout is how long a Node may be unreachable before its pods are deleted without
// confirmation. It is that of the policy.
var unreachableTimeout = drain.ForMachine(time.Time{}).UnreachableLadder[0].After

// deletionDrain returns the drain for a deletion. It is forced at the end of the drain timeout,
// counted from the deletion timestamp, or at once with the label force-deletion. The Node is
// unreachable if it has not been ready, or its file system has been read-only, for five minutes.
//
// While the drain is not forced and the Node is reachable, the volumes of the pods are detached
// before the VM is deleted. Other drains keep the VM, and wait for no volume.
//
// spec.maxEvictRetries has no effect. In MCM it is another deadline, of 20 seconds for each retry.
func (l *logic) deletionDrain(node *corev1.Node) DrainNode {
	started := l.now
	switch written := l.m.Status.CurrentStatus; {
	case l.m.DeletionTimestamp.IsZero():
	case recorded.Known(l.m.DeletionTimestamp.Time, l.now):
		started = l.m.DeletionTimestamp.Time
	case written.Phase == v1alpha1.MachineTerminating && recorded.Known(written.LastUpdateTime.Time, l.now):
		started = written.LastUpdateTime.Time
	}
	a := l.drainSince(node, started, facts.DeletionForced(l.m))
	if !a.forced(l.now) && !a.unreachable() { // else nothing unmounts
		a.Policy.Volumes = drain.VolumePolicy{Wait: true, DetachTimeout: max(l.p.DetachTimeout, 0), ReattachTimeout: max(l.p.ReattachTimeout, 0)}
	}
	return a
}

// updateDrain returns the drain of a Node that is selected for an in-place update. Its timeout
// counts from the condition InPlaceUpdate. It is forced at once with the label force-drain of the
// machine.
func (l *logic) updateDrain(node *corev1.Node) DrainNode {
	started := l.now
	c := facts.ConditionOf(node.Status.Conditions, v1alpha1.NodeInPlaceUpdate)
	if c != nil && c.Reason == v1alpha1.SelectedForUpdate && recorded.Known(c.LastTransitionTime.Time, l.now) {
		started = c.LastTransitionTime.Time
	}
	return l.drainSince(node, started, facts.DrainForced(l.m))
}

// preservationDrain returns the drain of the Node of a preserved Failed machine. Its timeout counts
// from when the machine failed or was preserved. It is forced at once with the label force-drain of
// the machine, and leaves the Node schedulable, because the taint of preserved Nodes keeps pods
// away.
func (l *logic) preservationDrain(node *corev1.Node) DrainNode {
	started := facts.PreservationDrainStarted(l.m, node, l.now)
	if started.IsZero() {
		started = l.now
	}
	a := l.drainSince(node, started, facts.DrainForced(l.m))
	a.Policy.KeepSchedulable = true
	return a
}

// drainSince returns a drain that began at started. force forces it at once.
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
		if from := facts.UnreachableFrom(node.Status.Conditions, unreachableTimeout); !from.IsZero() && l.now.After(from) {
			a.Reachability = drain.NodeReachability{Unreachable: true, Since: from.Add(-unreachableTimeout)}
		}
	}
	return a
}

// forceAt returns when the drain is forced. Zero means never.
func (a DrainNode) forceAt() time.Time { return a.Policy.EscalateFrom }

// forced reports whether the drain is forced. An unreachable Node forces the deletion of its pods,
// but not the end of the drain.
func (a DrainNode) forced(now time.Time) bool {
	return !a.forceAt().IsZero() && !now.Before(a.forceAt())
}

func (a DrainNode) unreachable() bool { return a.Reachability.Unreachable }

// After returns the view after a pass of package drain for a, which returned s and d at now. A
// failed pass counts, too, so that a forced drain ends although the API server does not answer.
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

// Again returns the view that asks for a new pass of the same drain, because pods may have changed.
func (v DrainView) Again() DrainView {
	v.Round, v.Done, v.Holds, v.NextCheck = time.Time{}, false, nil, time.Time{}
	return v
}

// StateFor returns the state for the next pass of a drain. It is zero if the view is that of
// another drain: one with another start, time of force, or cordon.
func (v DrainView) StateFor(a DrainNode) drain.State { return v.of(a).State }

// of returns the view for a drain. It is zero if the view is that of another drain.
func (v DrainView) of(a DrainNode) DrainView {
	if v.Started.IsZero() ||
		v.Started.Equal(a.Started) && v.ForceAt.Equal(a.forceAt()) && v.KeepSchedulable == a.Policy.KeepSchedulable {
		return v
	}
	return DrainView{}
}

// endedAt returns when the drain ended, and false if it has not. A drain ends when it is done, or a
// minute after its first forced pass.
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

// forceEnds returns when a forced drain is given up. Zero means that it is not forced.
func (v DrainView) forceEnds(a DrainNode, now time.Time) time.Time {
	if v.ForcedAt.IsZero() || !a.forced(now) {
		return time.Time{}
	}
	return v.ForcedAt.Add(forcedDrain)
}

// passDue reports whether a pass of the drain is due, and when the next one is. The start of force
// and of unreachability cause a pass of their own.
func (l *logic) passDue(node *corev1.Node, a DrainNode) (bool, time.Time) {
	round := l.in.Drain.of(a)
	next := round.NextCheck
	if !a.forced(l.now) && !a.forceAt().IsZero() {
		next = machinist.Earliest(next, a.forceAt())
	}
	if from := facts.UnreachableFrom(node.Status.Conditions, unreachableTimeout); !from.IsZero() && !round.Round.After(from) {
		next = machinist.Earliest(next, from.Add(time.Nanosecond))
	}
	unforced := a.forced(l.now) && round.ForcedAt.IsZero() && (!round.Started.IsZero() || round.Round.Before(a.forceAt()))
	return !recorded.Known(round.Round, l.now) || unforced || !next.IsZero() && !l.now.Before(next), next
}

// drain makes a pass of a drain, or waits for the holds of the last pass, which are added to the text of op.
func (l *logic) drain(node *corev1.Node, a DrainNode, message string, op v1alpha1.LastOperation) Decision {
	due, next := l.passDue(node, a)
	if due {
		return l.do(a, reasonDraining, message)
	}
	if holds := l.in.Drain.of(a).Holds; len(holds) > 0 {
		op.Description += l.waitsFor(holds)
		at := l.reportDue(op, a.Started, holds)
		if !at.IsZero() && !l.now.Before(at) {
			return l.recordOperation(reasonDraining, op)
		}
		next = machinist.Earliest(next, at)
	}
	return l.drainWaits(a, next)
}

const (
	// reportAfter is the minimum time between two reports of a drain in the last operation. A drain
	// that takes less time causes no write.
	reportAfter = 30 * time.Second
	// blockedAfter is that time if the pods that are left are blocked, or are no longer.
	blockedAfter = 2 * time.Second
)

// blocking are the reasons of holds of a drain that end only by a change of something else than the pod: of
// a PodDisruptionBudget, or of an annotation.
var blocking = []machinist.Reason{drain.ReasonBudget, drain.ReasonBudgetNever, drain.ReasonDoNotDisrupt}

// blocks reports whether a hold has one of the [blocking] reasons.
func blocks(h machinist.Hold) bool { return isBlocking(h.Reason) }

func isBlocking(r machinist.Reason) bool { return slices.Contains(blocking, r) }

// saysBlocked reports whether the text of a last operation names a hold that [blocks].
func saysBlocked(text string) bool {
	return slices.ContainsFunc(blocking, func(r machinist.Reason) bool { return strings.Contains(text, ": "+string(r)) })
}

// reportDue returns when to record an operation of a drain that began at started and waits for holds.
// Zero means that it is recorded.
func (l *logic) reportDue(op v1alpha1.LastOperation, started time.Time, holds []machinist.Hold) time.Time {
	last := l.m.Status.LastOperation
	if sameOperation(op, last) {
		return time.Time{}
	}
	after := reportAfter
	if slices.ContainsFunc(holds, blocks) != saysBlocked(last.Description) {
		after = blockedAfter
	}
	if at := last.LastUpdateTime.Time; at.After(started) && recorded.Known(at, l.now) {
		started = at
	}
	return started.Add(after)
}

// waitsFor returns what is added to the text of a last operation for the holds of a drain: the first holds,
// those that block first, the number of the others, and since when and what helps of a hold that blocks.
func (l *logic) waitsFor(holds []machinist.Hold) string {
	const shown = 3
	var names []string
	holds = slices.SortedStableFunc(slices.Values(holds), func(a, b machinist.Hold) int {
		switch {
		case blocks(a) == blocks(b):
			return 0
		case blocks(a):
			return -1
		default:
			return 1
		}
	})
	for _, h := range holds[:min(shown, len(holds))] {
		names = append(names, facts.WithoutMark(h.String()))
	}
	text := facts.WaitsMark + strings.Join(names, "; ")
	if more := len(holds) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if len(holds) > 0 && blocks(holds[0]) {
		text += l.waitDetails(holds[0])
	}
	return text
}

// drainWaits returns a decision with the holds of the last pass.
func (l *logic) drainWaits(a DrainNode, next time.Time) Decision {
	d := Decision{Reason: reasonDraining, Holds: slices.Clone(l.in.Drain.of(a).Holds), NextCheck: next}
	if len(d.Holds) == 0 {
		d.Holds = []machinist.Hold{{Subject: "node/" + a.NodeName, Reason: reasonDraining, Until: next}}
	}
	return d
}
