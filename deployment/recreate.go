// SPDX-License-Identifier: Apache-2.0

package deployment

import "fmt"

// recreate takes the next step of a replacement with a gap: all old machines go
// before the first new one comes.
func (c *pass) recreate() {
	l := c.ledger()
	before := l.asked()
	for _, a := range l.oldActive(false) {
		c.take(l, a, a.spec, allOnes)
		c.resize(a, a.spec, "all old machines go first")
	}
	if l.asked() != before || c.oldMachinesLeft(l) {
		return
	}
	if c.newSet == nil {
		c.create(l)
		return
	}
	c.withoutCapacity(l)
	c.sizeNewSet(l)
}

// oldMachinesLeft holds the new set while machines of others exist.
func (c *pass) oldMachinesLeft(l *ledger) bool {
	for _, a := range l.accounts {
		switch {
		case a.isNew:
		case a.replicas > 0 || a.spec > 0:
			c.hold(a.set.Name, ReasonWaitingForMachines, fmt.Sprintf("%d old machines are left", max(a.replicas, a.spec)))
			return true
		case !a.reported:
			c.hold(a.set.Name, ReasonSetNotReported, "it is not known whether old machines are left")
			return true
		}
	}
	return false
}
