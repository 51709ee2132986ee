// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recreate takes the next step of a replacement with a gap: all old machines go
// before the first new one comes.
func (c *pass) recreate() {
	l := c.ledger()
	changed := false
	for _, a := range l.oldActive(false) {
		changed = c.resize(a, 0, "all old machines go first") || changed
	}
	if changed || c.oldMachinesLeft() {
		return
	}
	if c.newSet == nil {
		c.create(l)
		return
	}
	c.sizeNewSet(l)
}

// oldMachinesLeft holds the new set while machines of others exist.
func (c *pass) oldMachinesLeft() bool {
	for _, s := range c.old {
		switch {
		case s.Status.Replicas > 0:
			c.hold(s.Name, ReasonWaitingForMachines, fmt.Sprintf("%d old machines are left", s.Status.Replicas))
			return true
		case !observed(s):
			c.hold(s.Name, ReasonSetNotReported, "it is not known whether old machines are left")
			return true
		}
	}
	for _, m := range c.in.Machines {
		if m == nil {
			continue
		}
		owner := metav1.GetControllerOf(m)
		if owner == nil || c.newSet == nil || owner.UID != c.newSet.UID {
			c.hold(m.Name, ReasonWaitingForMachines, "an old machine is left")
			return true
		}
	}
	return false
}
