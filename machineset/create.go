// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replaced is how many released machines are replaced while they still exist. It bounds the
// machines that are created if another client removes labels again and again.
const replaced = 3

// creations returns how many machines are created, and holds for the missing ones that are not.
func creations(in Observation, machines []*v1alpha1.Machine, c members.Counts, now time.Time) (int, []machinist.Hold) {
	set, missing := in.Set, c.Missing()
	stop := machinist.Hold{Subject: subjectOf(set)}
	switch {
	case missing == 0:
		return 0, nil
	case in.Freeze.Frozen:
		return 0, []machinist.Hold{in.Freeze.Hold(now)}
	case members.Frozen(set):
		stop.Reason, stop.Message = reasonFrozen, fmt.Sprintf("missing machines: %d; the label %s forbids to create them", missing, v1alpha1.FreezeLabelKey)
		return 0, []machinist.Hold{stop}
	case members.ScaleUpDisabled(set):
		stop.Reason, stop.Message = reasonScaleUpDisabled, fmt.Sprintf("missing machines: %d; the label %s forbids to create them", missing, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
		return 0, []machinist.Hold{stop}
	}
	allowed, holds := replaceable(set, in.Released, missing)
	allowed, more := worthwhile(set, machines, in.NeverJoined.recent(now), c, allowed)
	return allowed, append(holds, more...)
}

// replaceable returns how many of the missing machines may be created beside the released machines
// that still exist.
func replaceable(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, missing int) (int, []machinist.Hold) {
	released := members.ReleasedBy(set, machines)
	allowed := max(0, min(missing, missing+replaced-len(released)))
	if allowed == missing {
		return allowed, nil
	}
	return allowed, []machinist.Hold{{
		Subject: machineSubject(released[0].Name), Reason: reasonLimited,
		Message: fmt.Sprintf("%d of %d missing machines are not created: %d released machines still exist, of which at most %d are replaced",
			missing-allowed, missing, len(released), replaced),
	}}
}

// worthwhile returns how many of the missing machines may be created if new machines fail at once.
// Without a bound, each would be replaced at once, and the machines that are being deleted would
// accumulate. Their number is at most that of the desired machines, or replaced if that is larger.
// Machines that were deleted before their Nodes joined count for shortLife after their deletion.
// MCM has no such bound.
func worthwhile(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, gone NeverJoined, c members.Counts, missing int) (int, []machinist.Hold) {
	for _, m := range machines { // these are counted in Counts
		if !members.Leaving(m) || members.ShortLived(m) {
			delete(gone, m.UID)
		}
	}
	spare := max(c.Desired, replaced)
	allowed := min(missing, max(0, c.Desired+spare-c.Present-c.InFlight-c.ShortLived-len(gone)))
	if allowed == missing {
		return allowed, nil
	}
	h := machinist.Hold{Subject: subjectOf(set), Reason: reasonLimited, Message: fmt.Sprintf("%d of %d missing machines are not created", missing-allowed, missing)}
	if at := slices.IndexFunc(machines, members.ShortLived); at >= 0 {
		h.Subject = machineSubject(machines[at].Name)
		h.Message += fmt.Sprintf(": %d machines that were deleted within %s of their creation still exist", c.ShortLived, members.ShortLife)
	}
	for _, at := range gone {
		h.Until = machinist.Earliest(h.Until, at.Add(members.ShortLife))
	}
	if len(gone) > 0 {
		h.Message += fmt.Sprintf(": %d machines that never joined were deleted within the last %s", len(gone), members.ShortLife)
	}
	return allowed, []machinist.Hold{h}
}
