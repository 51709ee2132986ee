// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replacing counts the machines of a deployment that are being replaced: those
// neither Running nor Unknown that are not preserved, and once more those that
// are Terminating, so that the gap between a deletion and its replacement stays
// covered. The candidate, of which it is asked whether it may be replaced too,
// does not count; nor do those which wait for the same answer as a candidate whose
// update in place has failed, lest two of them wait for each other for ever. A nil
// candidate excludes no machine.
//
// MCM counts the candidate, so that one whose update has failed
// is never replaced.
func replacing(siblings []*v1alpha1.Machine, candidate *v1alpha1.Machine) int {
	n := 0
	for _, s := range siblings {
		if s == nil || sameMachine(s, candidate) || bothUpdatesFailed(s, candidate) {
			continue
		}
		n += replacements(s)
	}
	return n
}

// replacements returns for how many a machine counts.
func replacements(m *v1alpha1.Machine) int {
	n, status := 0, m.Status.CurrentStatus
	if status.Phase == v1alpha1.MachineTerminating {
		n++
	}
	if status.PreserveExpiryTime == nil && !TraitsOf(status.Phase).serving {
		n++
	}
	return n
}

func sameMachine(a, b *v1alpha1.Machine) bool {
	return a == b || a != nil && b != nil && a.UID != "" && a.UID == b.UID
}

func bothUpdatesFailed(a, b *v1alpha1.Machine) bool {
	return b != nil && a.Status.CurrentStatus.Phase == v1alpha1.MachineInPlaceUpdateFailed &&
		b.Status.CurrentStatus.Phase == v1alpha1.MachineInPlaceUpdateFailed
}

// replacement returns what a machine that was not well for too long waits for
// before it is failed, and false if nothing keeps it. A machine without a [Group] is
// not limited, as in MCM; it asks all the same, see [TakePermit]. Machines that are missing count too, as
// they do not there: one that is gone and whose set could not create the next one at
// once would leave room for another to go.
//
// Its siblings are counted in a cache, which lags behind: two machines could be
// failed at a time as neither shows yet. A permit stands for exactly what does not
// show. It is asked for within what the count leaves, and the count is repeated
// once it is held. So every sibling that has been failed is either counted, as it
// showed before the count, or still has its permit, as that is not given up before
// it shows (see [PermitOver]), and was among those which the permit had to find
// room beside: together they never are more than allowed. One that shows and has
// its permit still counts twice, for a moment, which is cautious.
func (l *logic) replacement() (Decision, bool) {
	group := l.group()
	if group == (Group{}) {
		return l.takePermit(ReasonHealthTimeout, 0)
	}
	h := machinist.Hold{Subject: group.subject(), Reason: ReasonReplacementLimit, Until: l.now.Add(recheckAfter)}
	if !l.in.Siblings.Complete {
		h.Message = "the other machines are not known"
		return hold(h), true
	}
	n := replacing(l.in.Siblings.Machines, l.m) + max(0, l.in.Siblings.Missing)
	room := l.p.MaxReplacements - n
	if room <= 0 {
		h.Message = fmt.Sprintf("%d being replaced >= %d allowed", n, l.p.MaxReplacements)
		return hold(h), true
	}
	if d, waits := l.takePermit(ReasonHealthTimeout, room); waits {
		return d, true
	}
	h.Message = "others began to be replaced meanwhile"
	return hold(h), l.in.Permit.Within > room
}

// group returns the machines with which this one is limited.
func (l *logic) group() Group {
	if g := l.in.Siblings.Group; g != (Group{}) {
		return g
	}
	return GroupOf(l.m, nil)
}

// withoutPermit gives back a permit that is not used now, before d is waited for.
// That of a machine which has been failed is none of these: see [PermitOver].
func (l *logic) withoutPermit(d Decision) Decision {
	if d.Action != nil || !l.in.Permit.Held || PermitOver(l.m) || l.group() == (Group{}) {
		return d
	}
	return l.do(ReturnPermit{Key: l.group().String(), Holder: string(l.m.UID)}, ReasonPermit, d.Message)
}

// PermitOver says whether the permit that [TakePermit] took for a machine can be
// given up: the machine has been failed, or goes, and is counted as such. The
// machine has to be as the cache shows it from which its siblings are counted;
// what the caller knows better does not help the others. Nil is a machine that the
// cache has lost. One that is Running, Unknown or could not be updated in place
// keeps its permit: that it is failed may be written and not show yet. If it has
// recovered instead, [Decide] gives back a permit that [Observation.Permit] says is
// held.
func PermitOver(m *v1alpha1.Machine) bool {
	return m == nil || !TraitsOf(m.Status.CurrentStatus.Phase).mayFail
}
