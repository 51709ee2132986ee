// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// updateInPlace takes the next step of an update in place. Nodes of old machines
// are made candidates; some are selected; the machine controller drains them, and
// the agents on them do the update. A machine whose update succeeded moves to the
// new set, with its VM and its Node.
//
// The sizes follow the machines, and never the other way round: a move changes one
// machine and no size. Once both sets have reported that they see it, the old one
// gets smaller and the new one larger; and once the new one has reported on that,
// the machine is acknowledged as one of its own. So a set that reads an old cache
// neither replaces a machine that left nor deletes one for another that came, and
// a crash at any point leaves nothing to repair.
func (c *pass) updateInPlace() {
	if c.in.NoCluster {
		c.stop(ReasonNoCluster, "there is no cluster whose Nodes could be updated in place")
		return
	}
	if c.newSet == nil {
		l := c.ledger()
		l.surge -= max(0, l.asked()-l.total()) // what old sets ask for and do not create has its place, too
		c.create(l)
		return
	}
	u := c.openUpdates()
	if u.to.doomed {
		c.hold(c.newSet.Name, ReasonSetDeleting, "the set for the present template is being deleted; another one is created when it is gone")
		return
	}
	u.keepOldFromGrowing()
	u.takeBack()
	u.followMoves()
	changing := u.move() || u.sizeSets()
	c.sizedForPresent()
	u.nameInstead()
	u.acknowledge()
	if !changing {
		u.selectNodes()
	}
	u.nominate()
	if !changing {
		u.tellUnknown()
	}
}

// scaleInPlace carries out a change of the replicas while an update in place is
// paused: what has moved is counted, and the sum follows the replicas. Nothing is
// selected, and nothing moves.
func (c *pass) scaleInPlace() {
	u := c.openUpdates()
	if u.to.doomed {
		return
	}
	u.followMoves()
	u.sizeSets()
	c.sizedForPresent()
	u.nameInstead()
	u.acknowledge()
}

// inPlace says whether an update in place is under way, so that a change of the
// replicas is part of it, and not for one set to take: an old set asks for
// machines, or machines have moved and are not acknowledged.
func (c *pass) inPlace() bool {
	if !c.updatesInPlace() || c.in.NoCluster || c.newSet == nil {
		return false
	}
	moving := func(a *account) bool { return a.counts.Moving > 0 && !a.doomed }
	return len(active(c.old)) > 0 || slices.ContainsFunc(c.accounts, moving)
}

// allowGrowth takes the label that keeps a set from creating machines off the new
// set, which has it if it was an old one before. If machines have left it in the
// meantime its size follows them in the same write, as its account was opened with
// what it has, or it would replace them; and it has to have seen that they left, or
// it would delete others.
func (c *pass) allowGrowth() {
	a := c.account(c.newSet)
	if a == nil || a.doomed || !machineset.ScaleUpDisabled(a.next) {
		return
	}
	asks, present := int64(a.set.Spec.Replicas), int64(a.counts.Present)
	if present < asks && !a.seesAll() {
		c.hold(a.set.Name, ReasonSetNotReported, fmt.Sprintf("it asks for %d machines and has %d; it creates none before it has reported what it has", asks, present))
		return
	}
	delete(a.next.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	a.changes = append(a.changes, "it may create machines again")
}

// settleMoves acknowledges machines that have moved if the strategy is another by
// now. For updates in place that is a part of each pass.
func (c *pass) settleMoves() {
	if c.updatesInPlace() ||
		!slices.ContainsFunc(c.accounts, func(a *account) bool { return a.counts.Moving > 0 }) {
		return
	}
	u := c.openUpdates()
	u.followMoves()
	u.nameInstead()
	u.acknowledge()
}

// sizedForPresent writes down for which number of replicas the active sets were
// sized, so that a change is not seen again. It writes down who goes as well, and
// so comes before others are named.
func (c *pass) sizedForPresent() {
	for _, a := range c.accounts {
		if !a.doomed && a.next.Spec.Replicas > 0 && !sizedForPresent(a.next.Annotations, c.d) {
			c.size(a, a.next.Spec.Replicas, fmt.Sprintf("sized for %d replicas", c.d.Spec.Replicas))
		}
	}
}
