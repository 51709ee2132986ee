// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// cordoning is the decision of a step about the cordon of the Node.
type cordoning struct {
	// stands means that the cordon is set, or that the policy has none.
	stands bool
	// observed means that the observed Node has the cordon.
	observed bool
	// set is the cordon to set, or nil.
	set *SetCordon
	// gate is the hold of the drain, or nil. message is for people.
	gate    *machinist.Hold
	message string
}

// cordonOf decides about the cordon of the Node. With an invalid policy, or after the end of the
// ladder, it sets none.
func cordonOf(v *view, valid bool) cordoning {
	node, cordon := v.in.Node, v.p.Cordon
	cordon.OutOfService = false // its pods may be running
	removed := uncordoned(v)
	old := outdated(v)
	f := cordoning{stands: v.p.KeepSchedulable || cordon.Stands(node) || old}
	f.observed = f.stands && !old && !v.p.KeepSchedulable
	switch {
	case f.stands, !valid, v.allow.end != "":
	case removed && !v.p.Reassert:
		hold := nodeHold(node.Name, ReasonUncordoned, "another client has uncordoned the Node: cordon it again to continue")
		f.gate = &hold
	default:
		f.set = &SetCordon{Node: node.Name, UID: node.UID, Cordon: cordon, At: v.now}
		if removed {
			f.message = string(ReasonUncordoned) + ": another client has uncordoned the Node, which is cordoned again"
		}
	}
	return f
}

// outdated reports whether the Node was read before the cordon was set.
func outdated(v *view) bool {
	version := v.in.Node.ResourceVersion
	return version != "" && compareVersions(version, v.s.CordonedVersion) < 0 && v.s.Cordon == v.p.baseCordon()
}

// uncordoned reports whether the cordon was set before and is not anymore, by the state or by a
// claim on the Node.
func uncordoned(v *view) bool {
	cordon := v.p.baseCordon()
	if cordon.Stands(v.in.Node) {
		return false
	}
	broken := func(c nodeops.Claim) bool { return c.Owner == cordon.Owner && len(c.Missing) > 0 }
	return slices.ContainsFunc(nodeops.Cordons(v.in.Node), broken) || !v.s.CordonedAt.IsZero() && v.s.Cordon == cordon
}

// holdAll holds the requests for pods while there is a gate.
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
