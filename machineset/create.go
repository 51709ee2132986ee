// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replaced is how many machines that lost their labels and were released are replaced
// while they still exist: whatever takes away labels, and however often, a set and what
// it has released are never more machines than it wants and so many.
const replaced = 3

// creations returns how many machines are created, and why not all that are missing.
func creations(in Observation, machines []*v1alpha1.Machine, c Counts, now time.Time) (int, []machinist.Hold) {
	set, missing := in.Set, c.Missing()
	stop := machinist.Hold{Subject: set.Name}
	switch {
	case missing == 0:
		return 0, nil
	case in.Freeze.Frozen:
		return 0, []machinist.Hold{in.Freeze.Hold(now)}
	case Frozen(set):
		stop.Reason, stop.Message = ReasonFrozen, fmt.Sprintf("%d machines missing, label %s", missing, v1alpha1.FreezeLabelKey)
		return 0, []machinist.Hold{stop}
	case ScaleUpDisabled(set):
		stop.Reason, stop.Message = ReasonScaleUpDisabled, fmt.Sprintf("%d machines missing, label %s", missing, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
		return 0, []machinist.Hold{stop}
	}
	allowed, holds := replaceable(set, in.Released, missing)
	allowed, more := worthwhile(set, machines, in.NeverJoined.recent(now), c, allowed)
	return allowed, append(holds, more...)
}

// replaceable returns how many of the missing machines may be created beside those that
// the set has released and that still exist.
func replaceable(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, missing int) (int, []machinist.Hold) {
	released := releasedBy(set, machines)
	allowed := max(0, min(missing, missing+replaced-len(released)))
	if allowed == missing {
		return allowed, nil
	}
	return allowed, []machinist.Hold{{
		Subject: released[0].Name, Reason: ReasonLimited,
		Message: fmt.Sprintf("%d of %d missing machines are not created: %d that lost their labels and were released still exist, and %d of those are replaced",
			missing-allowed, missing, len(released), replaced),
	}}
}

// worthwhile returns how many of the missing machines may be created if machines do
// not live: each that fails at once is replaced at once, under a new name, so that
// nothing else slows that down, and those on their way out pile up. There are never
// more of them, beside what the set wants, than it wants, or than it replaces of those
// it has released. Those that never joined and are gone count for as long as shortLife
// after their deletion, whatever the clocks of others say. The reference system has no
// such bound.
func worthwhile(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine, gone NeverJoined, c Counts, missing int) (int, []machinist.Hold) {
	for _, m := range machines { // which are counted otherwise
		if !Leaving(m) || shortLived(m) {
			delete(gone, m.UID)
		}
	}
	spare := max(c.Desired, replaced)
	allowed := min(missing, max(0, c.Desired+spare-c.Present-c.InFlight-c.ShortLived-len(gone)))
	if allowed == missing {
		return allowed, nil
	}
	h := machinist.Hold{Subject: set.Name, Reason: ReasonLimited, Message: fmt.Sprintf("%d of %d missing machines are not created", missing-allowed, missing)}
	if at := slices.IndexFunc(machines, shortLived); at >= 0 {
		h.Subject = machines[at].Name
		h.Message += fmt.Sprintf(": %d that were deleted within %s of their creation are still there", c.ShortLived, shortLife)
	}
	for _, at := range gone {
		h.Until = machinist.Earliest(h.Until, at.Add(shortLife))
	}
	if len(gone) > 0 {
		h.Message += fmt.Sprintf(": %d that failed before they joined were deleted within the last %s", len(gone), shortLife)
	}
	return allowed, []machinist.Hold{h}
}
