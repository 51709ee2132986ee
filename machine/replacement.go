// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replacing counts the machines of a group that are being replaced. A machine counts if it is
// neither Running nor Unknown and is not preserved. A Terminating machine counts twice, for the
// time between its deletion and its replacement. The candidate for the next replacement does not
// count. If its in-place update has failed, other machines whose update has failed do not count
// either, because they would wait for each other without end. A nil candidate excludes none.
//
// MCM counts the candidate, so that a machine whose update has failed is never replaced.
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

// replacements returns how often a machine counts.
func replacements(m *v1alpha1.Machine) int {
	n, status := 0, m.Status.CurrentStatus
	if status.Phase == v1alpha1.MachineTerminating {
		n++
	}
	if status.PreserveExpiryTime == nil && !facts.TraitsOf(status.Phase).Serving {
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

// replacement returns the hold of the replacement limit for a machine at the end of its health
// timeout, or false if the machine may fail. A machine without a [Group] is not limited, as in MCM,
// but takes a permit without a limit: see [TakePermit]. Unlike in MCM, missing machines of the
// group count, too. Otherwise another machine could fail before a deleted one is replaced.
//
// The siblings are counted in a cache, which may be stale. Two machines could fail at a time, and
// neither would see the other. A permit counts for a machine whose failure the cache does not show.
// It is taken within the limit that the count leaves, and the siblings are counted again with the
// permit held. Each failed sibling was either counted, or still had its permit, because a permit is
// returned after the cache shows the failure (see [FreesReplacement]). Together they do not exceed the
// limit. A machine that the cache shows and that still has its permit counts twice for a moment.
func (l *logic) replacement() (Decision, bool) {
	group := l.group()
	if group == (Group{}) {
		return l.takePermit(reasonHealthTimeout, 0)
	}
	h := machinist.Hold{Subject: group.subject(), Reason: reasonReplacementLimit, Until: l.now.Add(recheckAfter)}
	if !l.in.Siblings.Complete {
		h.Message = "the other machines of the group were not read"
		return hold(h), true
	}
	n := replacing(l.in.Siblings.Machines, l.m) + max(0, l.in.Siblings.Missing)
	room := l.p.MaxReplacements - n
	if room <= 0 {
		h.Message = fmt.Sprintf("machines being replaced: %d, limit: %d", n, l.p.MaxReplacements)
		return hold(h), true
	}
	if d, waits := l.takePermit(reasonHealthTimeout, room); waits {
		return d, true
	}
	h.Message = "more machines are being replaced since the permit was taken"
	return hold(h), l.in.Permit.Within > room
}

// group returns the group of the machine.
func (l *logic) group() Group {
	if g := l.in.Siblings.Group; g != (Group{}) {
		return g
	}
	return GroupOf(l.m, nil)
}

// withoutPermit returns a permit that is not used, before a decision that waits. The permit of a
// failed machine is returned by the caller: see [FreesReplacement].
func (l *logic) withoutPermit(d Decision) Decision {
	if d.Action != nil || !l.in.Permit.Held || permitOver(l.m) || l.group() == (Group{}) {
		return d
	}
	return l.do(ReturnPermit{Key: l.group().String(), Holder: string(l.m.UID)}, reasonPermit, d.Message)
}

// permitOver reports whether a machine has failed or is being deleted, and counts as such. One that is
// Running or Unknown, or whose in-place update has failed, may have failed without the cache showing it.
func permitOver(m *v1alpha1.Machine) bool {
	return m == nil || !facts.TraitsOf(m.Status.CurrentStatus.Phase).MayFail
}

// FreesReplacement reports what a change of a machine in the cache allows. group means that another
// machine of its [Group] may fail now: the machine counts less towards the replacement limit, leaves
// the group, or is deleted. permit means that the permit which [TakePermit] took for the machine can
// be returned: the cache shows that the machine has failed or is being deleted, or no longer has it.
// If a machine has recovered instead, [Decide] returns the permit that [Observation.Permit] holds.
func FreesReplacement(before, after *v1alpha1.Machine) (group, permit bool) {
	permit = permitOver(after)
	switch {
	case before == nil || before == after:
		return false, permit
	case after == nil || before.UID != after.UID:
		return true, permit
	default:
		return replacements(after) < replacements(before) ||
			before.Labels[v1alpha1.LabelKeyMachineDeploymentName] != after.Labels[v1alpha1.LabelKeyMachineDeploymentName] ||
			!slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, sameOwner), permit
	}
}
