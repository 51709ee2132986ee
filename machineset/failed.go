// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ReplaceFailed reports whether a Failed machine is deleted, to be replaced, and why or why not.
// node is the Node that the label of the machine names. The rules, in this order:
//
//  1. It is preserved: it stays ([ReasonPreserved]).
//  2. Its preservation has expired: it is deleted ("PreservationExpired").
//  3. Its Node was not read: it stays ("NodeNotLookedAt").
//  4. The machine controller will preserve it, by its annotations: it stays
//     ([ReasonPreservationAsked]).
//  5. Its Node became Ready after the machine failed, by [machine.NodeView.ReadyAgain]: it stays for a
//     minute ("NodeReadyAgain"), because the machine controller is about to make it Running.
//     The minute begins at read, when the caller first read that. If read is zero, it begins when
//     the Node became Ready.
//  6. It is deleted ("MachineFailed").
//
// A machine without a Node of its own stays if its own annotation asks for preservation. (MCM
// deletes it.) For a machine that is nil or not Failed it returns false and no reason.
func ReplaceFailed(m *v1alpha1.Machine, node machine.NodeView, read, now time.Time) (bool, machinist.Reason) {
	if !members.Failed(m) {
		return false, ""
	}
	switch {
	case members.Preserved(m, now):
		return false, ReasonPreserved
	case members.PreservedFailed(m):
		return true, reasonPreservationOver
	case nodeUnknown(m, node):
		return false, reasonNodeUnknown
	case facts.WillPreserve(m, node.Node, node.Looked, node.NoTarget, now):
		return false, ReasonPreservationAsked
	case now.Before(mayRecoverUntil(m, node, read, now)):
		return false, reasonNodeReadyAgain
	default:
		return true, reasonFailed
	}
}

// recoveryTime is how long a Failed machine may take to become Running after its Node is Ready.
const recoveryTime = time.Minute

// mayRecoverUntil returns until when a Failed machine stays because its Node is Ready again, or
// zero. A Node whose clock is ahead by more than recoveryTime keeps no machine.
func mayRecoverUntil(m *v1alpha1.Machine, node machine.NodeView, read, now time.Time) time.Time {
	ready := node.ReadyAgain(m, now)
	if !ready.IsZero() && !read.IsZero() {
		return read.Add(recoveryTime)
	}
	if ready.IsZero() || ready.After(now.Add(recoveryTime)) {
		return time.Time{}
	}
	return ready.Add(recoveryTime)
}

// nodeUnknown reports whether a machine names a Node that was not read.
func nodeUnknown(m *v1alpha1.Machine, node machine.NodeView) bool {
	return m.Labels[v1alpha1.NodeLabelKey] != "" && !node.Looked && !node.NoTarget
}
