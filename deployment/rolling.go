// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// roll does the next step of a rolling update. It changes the new set, or if that does not change,
// the old ones. It returns the new set if it creates that.
func (c *pass) roll() *v1alpha1.MachineSet {
	if c.newSet == nil {
		created := c.create(0)
		if created != nil && created.Spec.Replicas == 0 { // an old machine has to be deleted first
			c.reduceOldSets()
		}
		return created
	}
	short := c.withoutCapacity()
	if !c.sizeNewSet() && !c.reduceOldSets() && short > 0 && c.policy.FreeCapacity {
		c.freeCapacity(short)
	}
	return nil
}

// reduceOldSets decreases the old sets: first by unavailable machines that the new set does not
// need, then by others as far as the bounds allow. Preserved unavailable machines are last. It
// reports whether a set changes.
func (c *pass) reduceOldSets() bool {
	l := c.ledger
	before := l.planned()
	c.reduceWith(l.mayShrink(), unavailableOnly)
	c.reduceWith(l.mayLose(), withAvailable)
	if l.planned() == before && l.allSettled() && !slices.ContainsFunc(l.accounts, func(a *account) bool { return a.isNew && a.guaranteed() < a.spec }) {
		c.reduceWith(l.mayShrink(), withPreserved)
	}
	message := fmt.Sprintf("%s available, minimum %d", machines(l.available()), l.Least())
	for _, a := range l.accounts {
		if a.spec != int64(a.next.Spec.Replicas) {
			c.resize(a, a.spec, message)
		}
	}
	changed := l.planned() < before
	if left := l.oldActive(); len(left) > 0 && !changed {
		c.holdAvailability(left[0])
	}
	return changed
}

// reduceWith takes up to n machines from the old sets, the oldest set first.
func (c *pass) reduceWith(n int64, rule cutRule) {
	for _, a := range c.ledger.oldActive() {
		n -= c.take(a, n, rule)
	}
}

// lacksCapacity reports whether the last creation of a VM failed because the provider has no
// capacity.
func lacksCapacity(m *v1alpha1.Machine) bool {
	op := m.Status.LastOperation
	return !members.Leaving(m) && !facts.TraitsOf(m.Status.CurrentStatus.Phase).Available && op.Type == v1alpha1.MachineOperationCreate &&
		op.State == v1alpha1.MachineStateFailed && op.ErrorCode == codes.ResourceExhausted.String()
}

// withoutCapacity returns the number of new machines without capacity, and holds the first one.
func (c *pass) withoutCapacity() int64 {
	var first *v1alpha1.Machine
	n := int64(0)
	for _, m := range c.ledger.of(c.newSet).machines {
		if lacksCapacity(m) {
			if n++; first == nil {
				first = m
			}
		}
	}
	if n == 0 {
		return 0
	}
	next := "the rollout continues without it"
	if c.policy.FreeCapacity {
		next = "one old machine at a time is deleted to free capacity"
	}
	c.hold("machine/"+first.Name, reasonNoCapacity, fmt.Sprintf("%s of set %s; %s: %s", plural(n, "no capacity for %d machine", "no capacity for %d machines"), c.newSet.Name, next, brief(first.Status.LastOperation.Description)))
	return n
}

// freeCapacity deletes one old machine for a new one without capacity, even if no machine may be
// unavailable. All other desired machines must exist, so that at most one machine is missing for
// this.
func (c *pass) freeCapacity(short int64) {
	l := c.ledger
	if !l.allSettled() || l.sum(func(a *account) int64 { return a.replicas })-short < l.Desired {
		return
	}
	l.Unavailable = max(1, l.Unavailable) // the last use of the bounds
	for _, a := range l.oldActive() {
		if c.take(a, 1, withAvailable) > 0 {
			c.resize(a, a.spec, "it frees capacity for a new machine")
			return
		}
	}
}
