// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// goers returns which of the eligible machines a set lets go if it is to keep that
// many, and which beside them it may let go because of machines of it that were not
// seen: those that go before a machine which has just been created. It relies on
// the set choosing as [machineset.Choose] does, by the order of the policy.
func (c *pass) goers(s *v1alpha1.MachineSet, eligible []*v1alpha1.Machine, keep, unseen int64) (certain, possible []machineset.Victim) {
	order := c.policy.order(c.now)
	certain = machineset.Choose(s, eligible, int(keep), order)
	if unseen == 0 || int64(len(eligible))+unseen <= keep {
		return certain, nil
	}
	fresh := c.fresh()
	for _, v := range machineset.Choose(s, eligible, int(max(0, keep-unseen)), order)[len(certain):] {
		if v.By != machineset.ByPlan && !goesBefore(order, v.Machine, fresh) {
			break
		}
		possible = append(possible, v)
	}
	return certain, possible
}

// fresh is a machine as a set has just created it.
func (c *pass) fresh() *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.CreationTimestamp = metav1.NewTime(c.now)
	m.Status.CurrentStatus.Phase = v1alpha1.MachinePending
	return m
}

// beforeFresh returns the machines that a set may let go in place of one which
// it has just created, in that order.
func (c *pass) beforeFresh(machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	order, fresh := c.policy.order(c.now), c.fresh()
	for _, m := range machines {
		if goesBefore(order, m, fresh) {
			out = append(out, m)
		}
	}
	for i, v := range order.First(out, len(out)) {
		out[i] = v.Machine
	}
	return out
}

func goesBefore(order machineset.Order, a, b *v1alpha1.Machine) bool {
	n, _ := order.Compare(a, b)
	return n < 0
}
