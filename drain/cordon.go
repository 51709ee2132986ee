// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// cordoning is what is found about the cordon of the Node.
type cordoning struct {
	// stands says that the cordon stands, or that the policy has none.
	stands bool
	// seen says that the Node that was observed has the cordon.
	seen bool
	// set is the cordon to set, or nil.
	set *SetCordon
	// gate holds the drain, or nil. Message is what else is to be said.
	gate    *machinist.Hold
	message string
}

// cordonOf decides about the cordon of the Node. Nothing more is asked of a Node whose policy is
// not valid or whose ladder has ended.
func cordonOf(v *view, valid bool) cordoning {
	node, cordon := v.in.Node, v.p.Cordon
	cordon.OutOfService = false // its pods may be running
	taken := uncordoned(v)
	old := outdated(v)
	f := cordoning{stands: v.p.KeepSchedulable || cordon.Stands(node) || old}
	f.seen = f.stands && !old && !v.p.KeepSchedulable
	switch {
	case f.stands, !valid, v.allow.end != "":
	case taken && !v.p.Reassert:
		hold := nodeHold(node.Name, ReasonUncordoned, "the cordon was taken away: cordon the Node again to go on")
		f.gate = &hold
	default:
		f.set = &SetCordon{Node: node.Name, UID: node.UID, Cordon: cordon, At: v.now}
		if taken {
			f.message = string(ReasonUncordoned) + ": the cordon was taken away, and it is set again"
		}
	}
	return f
}

// outdated reports whether the Node was read before the cordon of the policy was set: the
// cordon stands as far as is known.
func outdated(v *view) bool {
	version := v.in.Node.ResourceVersion
	return version != "" && compareVersions(version, v.s.CordonedVersion) < 0 && v.s.Cordon == v.p.baseCordon()
}

// uncordoned reports whether the cordon stood before and does not any more. The drain
// remembers that. To a drain that remembers nothing, a claim on the Node tells it.
func uncordoned(v *view) bool {
	cordon := v.p.baseCordon()
	if cordon.Stands(v.in.Node) {
		return false
	}
	broken := func(c nodeops.Claim) bool { return c.Owner == cordon.Owner && len(c.Missing) > 0 }
	return slices.ContainsFunc(nodeops.Cordons(v.in.Node), broken) || !v.s.CordonedAt.IsZero() && v.s.Cordon == cordon
}

// holdAll holds the requests to pods while a gate is closed.
func holdAll(rows []Row, gates []machinist.Hold) {
	if len(gates) == 0 {
		return
	}
	for i := range rows {
		if row := &rows[i]; row.Action.IsRequest() {
			row.wait(gates[0].Reason, gates[0].Message, gates[0].Until)
		}
	}
}
