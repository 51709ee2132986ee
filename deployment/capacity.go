// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// NoCapacityFor says whether the last attempt to create a machine failed because
// the provider has no capacity, so that the machine waits for its place. A nil
// machine does not, nor does one that is available or leaving.
func NoCapacityFor(m *v1alpha1.Machine) bool {
	if machineset.Leaving(m) || machine.TraitsOf(m.Status.CurrentStatus.Phase).Available {
		return false
	}
	op := m.Status.LastOperation
	return op.Type == v1alpha1.MachineOperationCreate && op.State == v1alpha1.MachineStateFailed &&
		op.ErrorCode == codes.ResourceExhausted.String()
}

// withoutCapacity returns how many machines of the new set have no place, and
// holds the first of them.
func (c *pass) withoutCapacity(l *ledger) int {
	var first *v1alpha1.Machine
	n := 0
	for _, m := range l.of(c.newSet).machines {
		if NoCapacityFor(m) {
			if n++; first == nil {
				first = m
			}
		}
	}
	if n == 0 {
		return 0
	}
	var next string
	switch c.policy.OnNoCapacity {
	case NoCapacityStop:
		next = "nothing is replaced until there is some"
	case NoCapacityUseUnavailable:
		next = "old machines make place, one at a time"
	case NoCapacityWait:
		fallthrough
	default:
		next = "the roll-out goes on as far as it can without it"
	}
	c.hold(first.Name, ReasonNoCapacity, fmt.Sprintf("no capacity for %d of the machines of %s; %s: %s", n, c.newSet.Name, next, brief(first.Status.LastOperation.Description)))
	return n
}

// makePlace gives up one old machine for one that has no place, even if none may
// be unavailable: only if all that are wanted have a place or are about to lose
// it, so that never more than one is given up for nothing.
func (c *pass) makePlace(l *ledger, short int64) {
	if !l.allSettled() || l.sum(func(a *account) int64 { return a.replicas })-short < l.desired {
		return
	}
	l.unavailable = max(1, l.unavailable) // nothing is decided with this ledger after it
	for _, a := range l.oldActive(false) {
		if c.take(l, a, 1, spareOnes) > 0 {
			c.resize(a, a.spec, "it makes place for a new machine, as there is no capacity for more")
			return
		}
	}
}
