// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// updateInPlace takes the next step of an update in place, and returns the new set if it
// creates that. Nodes of old machines
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
func (c *pass) updateInPlace() *v1alpha1.MachineSet {
	if c.in.NoCluster {
		c.stop(reasonNoCluster, "machines join no cluster, so there are no Nodes to update in place")
		return nil
	}
	if c.newSet == nil {
		l := c.ledger
		return c.create(max(0, l.asked()-l.total())) // machines that old sets ask for and do not create have a place
	}
	u := c.openUpdates()
	if u.to.deleting {
		c.hold("machineset/"+c.newSet.Name, reasonSetDeleting, "the set of the present template is being deleted; another one is created when it is gone")
		return nil
	}
	u.keepOldFromGrowing()
	u.unmarkNew()
	u.followMoves()
	changing := u.move() || u.sizeSets()
	c.sizedForPresent()
	u.acknowledge()
	if !changing {
		u.selectNodes()
	}
	u.nominate()
	if !changing {
		u.tell((*updated).unknown, reasonNodeUnknown, "the node of %d old machine is not known; the others are updated", "the nodes of %d old machines are not known; the others are updated")
	}
	return nil
}

// scaleInPlace carries out a change of the replicas while an update in place is
// paused: what has moved is counted, and the sum follows the replicas. Nothing is
// selected, and nothing moves.
func (c *pass) scaleInPlace() {
	u := c.openUpdates()
	if u.to.deleting {
		return
	}
	u.followMoves()
	u.sizeSets()
	c.sizedForPresent()
	u.acknowledge()
}

// allowGrowth takes the label that keeps a set from creating machines off the new
// set, which has it if it was an old one before. If machines have left it in the
// meantime its size follows them in the same write, as its account was opened with
// what it has, or it would replace them; and it has to have seen that they left, or
// it would delete others.
func (c *pass) allowGrowth() {
	a := c.ledger.of(c.newSet)
	if a == nil || a.deleting || !machineset.ScaleUpDisabled(a.next) {
		return
	}
	asks, present := int64(a.set.Spec.Replicas), int64(a.counts.Present)
	if present < asks && !a.seesAll() {
		c.hold("machineset/"+a.set.Name, ReasonSetNotReported, fmt.Sprintf("%s, %d wanted; it creates none before it reports all of them", machines(present), asks))
		return
	}
	delete(a.next.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	a.changes = append(a.changes, "it may create machines again")
}

// settleMoves acknowledges machines that have moved if the strategy is another by
// now. For updates in place that is a part of each pass.
func (c *pass) settleMoves() {
	if updatesInPlace(c.d) || !c.ledger.moving() {
		return
	}
	u := c.openUpdates()
	u.followMoves()
	u.acknowledge()
}

// sizedForPresent writes down for which number of replicas the active sets were
// sized, so that a change is not seen again. It writes down who goes as well, and
// so comes before others are named.
func (c *pass) sizedForPresent() {
	for _, a := range c.ledger.accounts {
		if !a.deleting && a.next.Spec.Replicas > 0 && !sizedForPresent(a.next.Annotations, c.d) {
			c.size(a, a.next.Spec.Replicas, "sized for "+replicas(int64(c.d.Spec.Replicas)))
		}
	}
}
