// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ReplaceFailed decides whether a Failed machine is deleted, so that another
// takes its place. The node is that which the machine's label names. The rules are, in
// this order:
//
//  1. Preserved, and its time is not over: it stays ([ReasonPreserved]).
//  2. Preserved, and its time is over: it goes ([ReasonPreservationOver]).
//  3. It has a Node that nobody has looked at: it stays ([ReasonNodeUnknown]).
//  4. The machine controller is about to preserve it, by
//     [machine.WillPreserve]: it stays ([ReasonPreservationAsked]).
//  5. Its Node became Ready after the machine failed, by [machine.ReadyAgain]: it stays
//     for a minute ([ReasonNodeReadyAgain]), as the machine controller is about to make
//     it Running. The minute begins at read, when the caller first read that. A caller
//     that does not remember it passes zero: the minute begins when the Node became Ready.
//  6. It goes ([ReasonFailed]).
//
// A machine whose Node is gone, or belongs to another machine, is asked itself; the
// reference system's set controller lets it go whatever it asks.
//
// A machine that is not Failed, or nil, stays, for no reason.
func ReplaceFailed(m *v1alpha1.Machine, node machine.NodeView, read, now time.Time) (bool, machinist.Reason) {
	if !Failed(m) {
		return false, ""
	}
	switch {
	case Preserved(m, now):
		return false, ReasonPreserved
	case preservedFailed(m):
		return true, ReasonPreservationOver
	case nodeUnknown(m, node):
		return false, ReasonNodeUnknown
	case machine.WillPreserve(m, node, now):
		return false, ReasonPreservationAsked
	case now.Before(mayRecoverUntil(m, node, read, now)):
		return false, ReasonNodeReadyAgain
	default:
		return true, ReasonFailed
	}
}

// recoveryTime is how long a Failed machine whose Node is Ready again may take to become
// Running.
const recoveryTime = time.Minute

// mayRecoverUntil returns until when a Failed machine stays because its Node is Ready
// again, or zero. A Node whose clock is further ahead than that time keeps no machine.
func mayRecoverUntil(m *v1alpha1.Machine, node machine.NodeView, read, now time.Time) time.Time {
	ready := machine.ReadyAgain(m, node, now)
	if !ready.IsZero() && !read.IsZero() {
		return read.Add(recoveryTime)
	}
	if ready.IsZero() || ready.After(now.Add(recoveryTime)) {
		return time.Time{}
	}
	return ready.Add(recoveryTime)
}

// nodeUnknown reports whether a machine names a Node that was not looked at.
func nodeUnknown(m *v1alpha1.Machine, node machine.NodeView) bool {
	return m.Labels[v1alpha1.NodeLabelKey] != "" && !node.Looked && !node.NoTarget
}
