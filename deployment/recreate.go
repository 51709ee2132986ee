// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// recreate does the next step of a Recreate: all old machines are deleted before the first new one
// is created. It returns the new set if it creates that.
func (c *pass) recreate() *v1alpha1.MachineSet {
	l := c.ledger
	before := l.planned()
	for _, a := range l.oldActive() {
		c.take(a, a.spec, unbounded)
		c.resize(a, a.spec, "all old machines are deleted before new ones are created")
	}
	if l.planned() != before || c.oldMachinesLeft() {
		return nil
	}
	if c.newSet == nil {
		return c.create(0)
	}
	c.withoutCapacity()
	c.sizeNewSet()
	return nil
}

// oldMachinesLeft holds the new set while old machines exist.
func (c *pass) oldMachinesLeft() bool {
	for _, a := range c.ledger.accounts {
		switch {
		case a.isNew:
		case a.replicas > 0 || a.spec > 0:
			c.hold("machineset/"+a.set.Name, reasonWaitingForMachines, plural(max(a.replicas, a.spec), "%d old machine is left", "%d old machines are left"))
			return true
		case !a.reported:
			c.hold("machineset/"+a.set.Name, reasonSetNotReported, "its status does not tell yet whether old machines are left")
			return true
		}
	}
	return false
}
