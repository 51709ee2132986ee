// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updateInPlace does the next step of an in-place update. It returns the new set if it creates
// that. The Nodes of old machines become candidates, and some are selected. The machine controller
// drains a selected Node, and an agent on the Node does the update. An updated machine moves to the
// new set with its VM and its Node.
//
// Sizes follow machines: a move changes one machine and no size. Once both sets have reported the
// move, the old set becomes smaller and the new one larger. Once the new set has reported its size,
// the machine is acknowledged. So a set with an outdated cache neither replaces the machine nor
// deletes another one, and a crash at any point needs no repair.
func (c *pass) updateInPlace() *v1alpha1.MachineSet {
	if c.in.NoCluster {
		c.stop(reasonNoCluster, "machines join no cluster, so there are no Nodes to update in place")
		return nil
	}
	if c.newSet == nil {
		l := c.ledger
		return c.create(max(0, l.planned()-l.total())) // reserved for machines of old sets that do not exist
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
		u.holdFirst((*updated).unknown, reasonNodeUnknown, "the node of %d old machine is not known; the others are updated", "the nodes of %d old machines are not known; the others are updated")
	}
	return nil
}

// scaleInPlace carries out a change of the replicas while an in-place update is paused. Machines
// that moved are counted. No Node is selected, and no machine moves.
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

// allowGrowth removes the label that disables scale-up from the new set, which has it from a former
// rollout. The set must have reported the machines that left it. Its size follows them in the same
// write, so that it does not replace them.
func (c *pass) allowGrowth() {
	a := c.ledger.of(c.newSet)
	if a == nil || a.deleting || !members.ScaleUpDisabled(a.next) {
		return
	}
	asks, present := int64(a.set.Spec.Replicas), int64(a.counts.Present)
	if present < asks && !a.seesAll() {
		c.hold("machineset/"+a.set.Name, reasonSetNotReported, fmt.Sprintf("%s, %d wanted; it creates none before it reports all of them", machines(present), asks))
		return
	}
	delete(a.next.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
	a.changes = append(a.changes, "it may create machines again")
}

// settleMoves acknowledges machines that moved, if the strategy is no longer the in-place update.
func (c *pass) settleMoves() {
	if updatesInPlace(c.d) || !c.ledger.moving() {
		return
	}
	u := c.openUpdates()
	u.followMoves()
	u.acknowledge()
}

// sizedForPresent writes the present replicas to the annotations of the active sets, so that a
// change is not found again.
func (c *pass) sizedForPresent() {
	for _, a := range c.ledger.accounts {
		if !a.deleting && a.next.Spec.Replicas > 0 && !rollout.SizedForPresent(a.next.Annotations, c.d) {
			c.size(a, a.next.Spec.Replicas, "sized for "+replicas(int64(c.d.Spec.Replicas)))
		}
	}
}
