// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// scaling reports whether the replicas changed. An in-place update or a recreation that is not
// finished reaches the new size by itself.
func (c *pass) scaling() bool {
	if !rollout.ScalingDue(c.d, c.newSet, c.standing()) {
		return false
	}
	switch c.d.Spec.Strategy.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		return c.newSet.Spec.Replicas > 0 && len(rollout.Active(c.old)) == 0
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		return !c.inPlace()
	default:
		return true
	}
}

// inPlace reports whether an in-place update is not finished, so that changed replicas are part of
// it: an old set has replicas, or machines that moved are not acknowledged.
func (c *pass) inPlace() bool {
	if !updatesInPlace(c.d) || c.in.NoCluster || c.newSet == nil {
		return false
	}
	moving := func(a *account) bool { return a.counts.Moving > 0 && !a.deleting }
	return len(rollout.Active(c.old)) > 0 || slices.ContainsFunc(c.ledger.accounts, moving)
}

// standing returns the old sets without a deletion timestamp. The others are not scaled.
func (c *pass) standing() []*v1alpha1.MachineSet {
	return slices.DeleteFunc(slices.Clone(c.old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
}

// scale brings the sets to changed replicas.
func (c *pass) scale() {
	standing, rule := c.standing(), surplus
	switch {
	case rollout.Alone(c.newSet, standing) != nil:
		rule = surplusUnbounded
	case rollout.Saturated(c.d, c.newSet):
		rule = withPreserved // the old machines are already replaced
	}
	for _, t := range rollout.Targets(c.d, rollout.Limits(c.ledger.Bounds), c.newSet, standing, c.namedInSets(), c.unavailableInSets()) {
		c.scaleTo(c.ledger.of(t.Set), int64(t.To), rule)
	}
}

// namedInSets returns the numbers of machines of the sets that were named for deletion. Their sum
// is at most the decrease of the replicas.
func (c *pass) namedInSets() rollout.InSets {
	var before int32
	for _, s := range rollout.Active(c.in.Sets) {
		if n, ok := rollout.IntAnnotation(s, v1alpha1.DesiredReplicasAnnotation); ok {
			before = max(before, n)
		}
	}
	named := rollout.InSets{}
	left := int64(max(0, before-c.d.Spec.Replicas))
	for _, a := range c.ledger.accounts {
		if n := min(left, a.spec, a.demanded()+c.ledger.namedToStay(a)); n > 0 && !a.deleting {
			named[a.set] = rollout.Narrow(n)
			left -= n
		}
	}
	return named
}

// unavailableInSets returns the numbers of machines of the sets that are neither available nor
// preserved nor named. Machines that join count only while the rollout is paused, because otherwise
// it would create others for them.
func (c *pass) unavailableInSets() rollout.InSets {
	out := rollout.InSets{}
	for _, a := range c.ledger.accounts {
		out[a.set] = rollout.Narrow(count(a.stay, func(m *v1alpha1.Machine) bool {
			return c.cost(a, m) == costsNothing && !c.ledger.named[m.UID] && (c.d.Spec.Paused || !joining(m))
		}))
	}
	return out
}

// scaleTo brings one set as close to a size as the bounds allow. The number that it was sized for
// is written in any case. The rollout or the next decision does the rest.
func (c *pass) scaleTo(a *account, size int64, rule cutRule) {
	l, changed := c.ledger, false
	if size > a.spec {
		size = min(size, max(a.spec, l.Desired)) // more machines would have to be deleted again
	}
	if was, ok := rollout.IntAnnotation(a.set, v1alpha1.DesiredReplicasAnnotation); ok && was >= c.d.Spec.Replicas && c.d.Spec.Paused { // only a rollout uses the surge
		size = min(size, max(a.spec, a.spec+l.Desired-l.planned()))
	}
	switch {
	case a.deleting:
		c.hold("machineset/"+a.set.Name, reasonSetDeleting, "the set is being deleted and not scaled any more")
		return
	case size > a.spec && a.isNew && a.spec == 0 && c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType && c.oldMachinesLeft():
	case size > a.spec:
		changed = c.grow(a, size)
	case size < a.spec:
		changed = c.shrink(a, size, fmt.Sprintf("%d > %d for %d replicas", a.spec, size, l.Desired), rule)
	}
	if !changed && !rollout.SizedForPresent(a.set.Annotations, c.d) {
		c.size(a, rollout.Narrow(a.spec), "sized for "+replicas(l.Desired))
	}
}
