// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/nodeops"
)

// gates raises what else the drain waits for: a policy that contradicts itself, a fence
// that somebody took away, hooks. The first one that keeps requests back is
// remembered.
func (r *round) gates(plan *Plan) {
	r.policyGates()
	fence := r.p.Fence
	if r.in.Reach.State != PoweredOff {
		fence.OutOfService = false // its pods may be running
	}
	stands := r.p.KeepSchedulable || fence.Stands(r.in.Node)
	r.open = !stands
	switch {
	case stands:
		r.fenced()
	case r.force.end != "", r.closed != nil: // nothing more is asked
	case r.uncordoned() && !r.p.Reassert:
		r.raise(Hold{
			Subject: "node/" + r.in.Node.Name, Reason: ReasonUncordoned,
			Message: "somebody took the fence away: fence the Node again to go on",
		}, true)
	default:
		plan.Fence = &SetFence{Node: r.in.Node.Name, UID: r.in.Node.UID, Fence: fence, At: r.now}
		switch {
		case r.uncordoned():
			r.note(string(ReasonUncordoned) + ": somebody took the fence away, and it is set again")
		case fence.Outlived(r.in.Node):
			r.note("the instance is on again, and the Node is put back into service")
		}
	}
	r.hooks()
	plan.Gates, plan.Message = r.raised, strings.Join(r.notes, "; ")
}

// policyGates raises what is not valid: ladders, and the fence.
func (r *round) policyGates() {
	errs := []error{r.p.Ladder.Validate(), r.p.UnreachableLadder.Validate()}
	if !r.p.KeepSchedulable {
		errs = append(errs, r.p.Fence.Validate())
	}
	for _, err := range errs {
		if err != nil {
			r.raise(Hold{Subject: "policy", Reason: ReasonInvalidPolicy, Message: err.Error()}, true)
		}
	}
}

// baseFence is what the policy's fence always consists of: not what comes and goes with
// the instance, nor what is only said.
func (r *round) baseFence() nodeops.Fence {
	fence := r.p.Fence
	fence.OutOfService, fence.Reason = false, ""
	return fence
}

// fenced remembers the fence that stands.
func (r *round) fenced() {
	if r.p.KeepSchedulable {
		return
	}
	r.s.Fence = r.baseFence()
	if r.s.FencedAt.IsZero() || r.s.FencedAt.After(r.now) {
		r.s.FencedAt = r.now
	}
}

// uncordoned says whether the fence stood before and does not any more. The drain
// remembers that, and a claim on the Node tells it to one that remembers nothing.
func (r *round) uncordoned() bool {
	fence := r.baseFence()
	if fence.Stands(r.in.Node) {
		return false
	}
	broken := func(c nodeops.Claim) bool { return c.Owner == fence.Owner && len(c.Missing) > 0 }
	if slices.ContainsFunc(nodeops.Fences(r.in.Node), broken) {
		return true
	}
	return !fence.Outlived(r.in.Node) && !r.s.FencedAt.IsZero() && r.s.Fence == fence
}

// hooks raises the hooks that are not over.
func (r *round) hooks() {
	hooks := slices.Clone(r.in.Hooks)
	slices.SortFunc(hooks, compareHooks)
	for _, h := range slices.Compact(hooks) {
		before := h.Stage != AfterDrain
		name := fmt.Sprintf("hook %s of %s", h.Name, cmp.Or(h.Owner, "nobody"))
		if !h.Until.IsZero() && !h.Until.After(r.now) {
			r.note(name + " was waited for until " + formatTime(h.Until) + " and no longer")
			continue
		}
		hold := Hold{Subject: "hook/" + h.Name, Reason: ReasonHook, Message: name + " comes before the end of the drain", Until: h.Until}
		if before {
			hold.Message = name + " comes before any pod is asked to go"
		}
		r.raise(hold, before)
	}
}

func compareHooks(a, b Hook) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Stage, b.Stage), a.Until.Compare(b.Until),
	)
}

// raise adds a gate, and closes it to requests.
func (r *round) raise(h Hold, closed bool) {
	r.raised = append(r.raised, h)
	if closed && r.closed == nil {
		r.closed = &h
	}
}

// note adds to the message of the plan.
func (r *round) note(s string) { r.notes = append(r.notes, s) }

// holdGates holds the requests to pods that a gate keeps back.
func (r *round) holdGates(rows []Row) {
	if r.closed == nil {
		return
	}
	for i := range rows {
		if row := &rows[i]; row.Verdict.strength() > 0 {
			row.Verdict, row.Grace = Wait, nil
			row.Reason, row.Message, row.Until = r.closed.Reason, r.closed.Message, r.closed.Until
		}
	}
}
