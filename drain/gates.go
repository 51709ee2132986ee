// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/nodeops"
)

// gates raises what else the drain waits for: a policy that contradicts itself, a fence
// that somebody took away, hooks. The first one that keeps requests back is
// remembered.
func (r *round) gates(plan *Decision) {
	r.policyGates()
	fence := r.p.Fence
	if r.in.Reachability.State != PoweredOff {
		fence.OutOfService = false // its pods may be running
	}
	stands := r.p.KeepSchedulable || fence.Stands(r.in.Node) || !fence.OutOfService && r.outdated()
	r.open = !stands
	switch {
	case stands:
		r.fenced()
	case r.force.end != "", r.closed != nil: // nothing more is asked
	case r.uncordoned() && !r.p.Reassert:
		r.raise(machinist.Hold{
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
	for _, err := range r.p.problems() {
		r.raise(machinist.Hold{Subject: "policy", Reason: ReasonInvalidPolicy, Message: err.Error()}, true)
	}
}

// Validate returns what is wrong with the policy: its ladders, or its fence. A drain with a
// policy that is not valid does nothing but say so.
func (p Policy) Validate() error { return errors.Join(p.problems()...) }

// problems returns what is wrong with the policy: ladders, and the fence.
func (p *Policy) problems() []error {
	errs := []error{p.Ladder.Validate(), p.UnreachableLadder.Validate()}
	if !p.KeepSchedulable {
		errs = append(errs, p.Fence.Validate())
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// baseFence is what the policy's fence always consists of: not what comes and goes with
// the instance, nor what is only said.
func (p *Policy) baseFence() nodeops.Fence {
	fence := p.Fence
	fence.OutOfService, fence.Reason = false, ""
	return fence
}

// outdated reports whether the Node was read before the fence of the policy was set: the
// fence stands as far as is known.
func (r *round) outdated() bool {
	version := r.in.Node.ResourceVersion
	return version != "" && compareVersions(version, r.s.FencedVersion) < 0 && r.s.Fence == r.p.baseFence()
}

// fenced remembers the fence that stands.
func (r *round) fenced() {
	if !r.p.KeepSchedulable && !r.outdated() {
		r.s.fencedBy(r.in.Node, r.p, r.now)
	}
}

// Fenced returns the state of a drain whose fence was set just now. The Node is the one that
// the API server returned; nil changes nothing.
func (s State) Fenced(node *corev1.Node, p Policy, now time.Time) State {
	if node != nil {
		s.fencedBy(node, p, now)
	}
	return s
}

// fencedBy remembers that a Node has the fence of the policy.
func (s *State) fencedBy(node *corev1.Node, p Policy, now time.Time) {
	s.Fence, s.FencedVersion = p.baseFence(), node.ResourceVersion
	if !recorded.Known(s.FencedAt, now) {
		s.FencedAt = now
	}
}

// uncordoned says whether the fence stood before and does not any more. The drain
// remembers that, and a claim on the Node tells it to one that remembers nothing.
func (r *round) uncordoned() bool {
	fence := r.p.baseFence()
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
		hold := machinist.Hold{Subject: "hook/" + h.Name, Reason: ReasonHook, Message: name + " comes before the end of the drain", Until: h.Until}
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
func (r *round) raise(h machinist.Hold, closed bool) {
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
