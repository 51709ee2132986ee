// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replacing counts the machines of a group that are being replaced. A machine counts if it is
// neither Running nor Unknown and is not preserved. A Terminating machine counts twice, for the
// time between its deletion and its replacement. The candidate for the next replacement does not
// count. If its in-place update has failed, other machines whose update has failed do not count
// either, because they would wait for each other without end.
//
// MCM counts the candidate, so that a machine whose update has failed is never replaced.
func replacing(siblings []*v1alpha1.Machine, candidate *v1alpha1.Machine) int {
	const failed = v1alpha1.MachineInPlaceUpdateFailed
	n, both := 0, candidate.Status.CurrentStatus.Phase == failed
	for _, s := range siblings {
		if s == nil || sameMachine(s, candidate) || both && s.Status.CurrentStatus.Phase == failed {
			continue
		}
		n += facts.Replacements(s)
	}
	return n
}

func sameMachine(a, b *v1alpha1.Machine) bool {
	return a == b || a != nil && b != nil && a.UID != "" && a.UID == b.UID
}

// replacement returns the hold of the replacement limit for a machine at the end of its health
// timeout, or the zero Decision if the machine may fail. A machine without a group is not
// limited, as in MCM, but takes a permit without a limit: see [TakePermit]. Unlike in MCM, missing
// machines of the group count, too. Otherwise another machine could fail before a deleted one is
// replaced.
//
// The siblings are counted in a cache, which may be stale. Two machines could fail at a time, and
// neither would see the other. A permit counts for a machine whose failure the cache does not show.
// It is taken within the limit that the count leaves, and the siblings are counted again with the
// permit held. Each failed sibling was either counted, or still had its permit, because a permit is
// returned after the cache shows the failure. Together they do not exceed
// the limit. A machine that the cache shows and that still has its permit counts twice for a
// moment.
func (l *logic) replacement() Decision {
	group := l.group()
	if group == (facts.Group{}) {
		return l.takePermit(reasonHealthTimeout, 0)
	}
	h := machinist.Hold{Subject: group.Subject(), Reason: reasonReplacementLimit, Until: l.now.Add(recheckAfter)}
	if !l.in.Siblings.Complete {
		h.Message = "the other machines of the group were not read"
		return hold(h)
	}
	n := replacing(l.in.Siblings.Machines, l.m) + max(0, l.in.Siblings.Missing)
	room := l.p.MaxReplacements - n
	if room <= 0 {
		h.Message = fmt.Sprintf("machines being replaced: %d, limit: %d", n, l.p.MaxReplacements)
		return hold(h)
	}
	if d := l.takePermit(reasonHealthTimeout, room); d.Reason != "" {
		return d
	}
	h.Message = "more machines are being replaced since the permit was taken"
	if l.in.Permit.Within > room {
		return hold(h)
	}
	return Decision{}
}

// group returns the group of the machine.
func (l *logic) group() facts.Group { return facts.GroupOf(l.m, l.in.Siblings.Set) }

// withoutPermit returns a permit that is not used, before a decision that waits. The permit of a
// failed machine is returned by the caller.
func (l *logic) withoutPermit(d Decision) Decision {
	if d.Action != nil || !l.in.Permit.Held || facts.PermitOver(l.m) || l.group() == (facts.Group{}) {
		return d
	}
	return l.do(ReturnPermit{Key: l.group().String(), Holder: string(l.m.UID)}, reasonPermit, d.Message)
}

// takePermit takes a permit to fail the machine, once in a pass. The decision is zero if the permit
// is held. within is the limit of permits of the group. Zero takes none.
func (l *logic) takePermit(why machinist.Reason, within int) Decision {
	switch p := l.in.Permit; {
	case !p.Asked:
		a := TakePermit{Key: l.group().String(), Holder: string(l.m.UID), Within: within, Why: why, VMGone: l.vanished()}
		return l.do(a, reasonPermit, "")
	case !p.Held:
		return hold(l.refusal()).by(l.now.Add(time.Minute))
	default:
		return Decision{}
	}
}

// refusal returns the hold for a refused permit.
func (l *logic) refusal() machinist.Hold {
	h, soon := l.in.Permit.Refused, l.now.Add(recheckAfter)
	if h.Reason != "" {
		if !h.Until.After(l.now) {
			h.Until = soon
		}
		return h
	}
	limit := machinist.Hold{Subject: "machine/" + l.m.Name, Reason: reasonReplacementLimit, Message: "no permit is free", Until: soon}
	if g := l.group(); g != (facts.Group{}) {
		limit.Subject = g.Subject()
	}
	if h.Until.After(l.now) {
		limit.Until = machinist.Earliest(soon, h.Until)
	}
	return limit
}

// extended returns the end of the creation timeout. After the end it returns the time until which a
// refused permit keeps the machine from failing. The machine continues to be created until then.
func (l *logic) extended(end time.Time) time.Time {
	if h := l.in.Permit.Refused; l.refused() && h.Until.After(l.now) && !end.After(l.now) {
		return h.Until
	}
	return end
}

// refused reports whether the controller refused the permit with a reason.
func (l *logic) refused() bool {
	p := l.in.Permit
	return p.Asked && !p.Held && p.Refused.Reason != ""
}

// withRefusal adds the hold of a refused permit to a decision that waits for a machine to join.
func (l *logic) withRefusal(d Decision) Decision {
	if d.Action != nil || !l.refused() || !leads(l.phase(), reasonStaleNode) || slices.Contains(d.Holds, l.refusal()) {
		return d
	}
	return l.firstAction(func() Decision { return l.takePermit(reasonCreationTimeout, 0) }, func() Decision { return d })
}

// FailingSince returns since when a machine fails to serve. Zero means that it serves, that its
// creation timeout has not ended, or that it was deleted while it served. It is zero for nil.
//
// For a machine that is Unknown or Failed, or whose in-place update has failed, it is when its Node
// stopped being Ready. If that is not recorded, or is later, it is when the machine entered its
// phase. For a machine that has not joined in time, it is the end of the creation timeout of p.
func FailingSince(m *v1alpha1.Machine, p Policy, now time.Time) time.Time {
	if m == nil {
		return time.Time{}
	}
	switch status := &m.Status; {
	case m.DeletionTimestamp != nil:
		return facts.NotReadySince(status, m.DeletionTimestamp.Time, time.Time{})
	case facts.TraitsOf(status.CurrentStatus.Phase).MayFail && status.CurrentStatus.Phase != v1alpha1.MachineRunning, status.CurrentStatus.Phase == v1alpha1.MachineFailed:
		entered := status.CurrentStatus.LastUpdateTime.Time
		return facts.NotReadySince(status, entered, entered)
	case leads(status.CurrentStatus.Phase, reasonStaleNode): // it is to join
		l := logic{m: m, p: p.forMachine(m), now: now}
		if l.expired() {
			return l.creationDeadline()
		}
	}
	return time.Time{}
}

// NeedsSiblings reports whether [Decide] may read the siblings of a machine: in the phases in which
// a machine can fail because of its health. It is false for nil.
func NeedsSiblings(m *v1alpha1.Machine) bool {
	return m != nil && m.DeletionTimestamp.IsZero() && leads(m.Status.CurrentStatus.Phase, reasonHealthTimeout)
}
