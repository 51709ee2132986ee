// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// fencing is what is found about the fence of the Node.
type fencing struct {
	// stands says that the fence stands, or that the policy has none.
	stands bool
	// seen says that the Node that was observed has the fence.
	seen bool
	// set is the fence to set, or nil.
	set *SetFence
	// gate holds the drain, or nil. Message is what else is to be said.
	gate    *machinist.Hold
	message string
}

// fenceOf decides about the fence of the Node. Nothing more is asked of a Node whose policy is
// not valid or whose ladder has ended.
func fenceOf(v *view, valid bool) fencing {
	node, fence := v.in.Node, v.p.Fence
	fence.OutOfService = false // its pods may be running
	taken := uncordoned(v)
	old := outdated(v)
	f := fencing{stands: v.p.KeepSchedulable || fence.Stands(node) || old}
	f.seen = f.stands && !old && !v.p.KeepSchedulable
	switch {
	case f.stands, !valid, v.allow.end != "":
	case taken && !v.p.Reassert:
		hold := nodeHold(node.Name, ReasonUncordoned, "the fence was taken away: fence the Node again to go on")
		f.gate = &hold
	default:
		f.set = &SetFence{Node: node.Name, UID: node.UID, Fence: fence, At: v.now}
		if taken {
			f.message = string(ReasonUncordoned) + ": the fence was taken away, and it is set again"
		}
	}
	return f
}

// outdated reports whether the Node was read before the fence of the policy was set: the
// fence stands as far as is known.
func outdated(v *view) bool {
	version := v.in.Node.ResourceVersion
	return version != "" && compareVersions(version, v.s.FencedVersion) < 0 && v.s.Fence == v.p.baseFence()
}

// uncordoned reports whether the fence stood before and does not any more. The drain
// remembers that. To a drain that remembers nothing, a claim on the Node tells it.
func uncordoned(v *view) bool {
	fence := v.p.baseFence()
	if fence.Stands(v.in.Node) {
		return false
	}
	broken := func(c nodeops.Claim) bool { return c.Owner == fence.Owner && len(c.Missing) > 0 }
	return slices.ContainsFunc(nodeops.Fences(v.in.Node), broken) || !v.s.FencedAt.IsZero() && v.s.Fence == fence
}

// holdAll holds the requests to pods while a gate is closed.
func holdAll(rows []Row, gates []machinist.Hold) {
	if len(gates) == 0 {
		return
	}
	for i := range rows {
		if row := &rows[i]; row.Verdict.Asks() {
			row.wait(gates[0].Reason, gates[0].Message, gates[0].Until)
		}
	}
}
