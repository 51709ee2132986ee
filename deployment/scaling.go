// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// scaling says whether the replicas changed. A Recreate roll-out that is under
// way brings all sets to their size anyway, in its own order.
func (c *pass) scaling() bool {
	if !ScalingEvent(c.d, c.newSet, c.old) {
		return false
	}
	if c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		return c.newSet.Spec.Replicas > 0 && len(active(c.old)) == 0
	}
	return true
}

// scale brings the sets to a changed number of replicas.
func (c *pass) scale() {
	l := c.ledger()
	alone := ActiveOrLatest(c.newSet, c.old) != nil
	for _, t := range ScaleTargets(c.d, c.newSet, c.old) {
		c.scaleTo(l, l.of(t.Set), int64(t.To), alone)
	}
}

// scaleTo brings one set as near to a size as the bounds allow. What it was
// sized for is written in any case: what is missing is for the roll-out, or for
// the next time.
func (c *pass) scaleTo(l *ledger, a *account, size int64, alone bool) {
	changed := false
	size = min(size, l.desired) // what is beyond would only have to go again
	switch {
	case a.doomed:
		c.hold(a.set.Name, ReasonSetDeleting, "the set is being deleted and not scaled any more")
		return
	case size > a.spec:
		changed = c.growSet(l, a, size)
	case size < a.spec:
		allowed := a.spec - size
		if !alone {
			allowed = l.reducible(a, a.spec-size)
		}
		changed = c.resize(a, a.spec-allowed, fmt.Sprintf("%d > %d for %d replicas", a.spec, size, l.desired))
		if a.spec > size {
			c.holdAvailability(l, a)
		}
	}
	if !changed && !sizedForPresent(a.set.Annotations, c.d) {
		c.write(a.set, narrow(a.spec), "sized for the present number of replicas")
	}
}
