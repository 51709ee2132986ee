// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// updates are the machines of a deployment during an in-place update, each once.
type updates struct {
	c      *pass
	l      *ledger
	to     *account   // of the new set
	units  []*updated // machines that stay, by set and name
	manual bool       // users select the Nodes
}

// updated is one machine with its Node.
type updated struct {
	of        *account
	machine   *v1alpha1.Machine
	node      *corev1.Node // nil if it does not exist or is not known
	known     bool         // the Node was read
	stage     updateStage
	available bool // and its update has not begun
}

// openUpdates returns all machines that stay.
func (c *pass) openUpdates() *updates {
	u := &updates{c: c, l: c.ledger, to: c.ledger.of(c.newSet)}
	_, u.manual, _ = rollout.UpdateOf(c.d.Spec.Strategy)
	n := 0
	for _, a := range c.ledger.accounts {
		n += len(a.machines)
	}
	all := make([]updated, n) // one allocation
	u.units = make([]*updated, 0, n)
	for _, a := range c.ledger.accounts {
		going := make(map[types.UID]bool, len(a.outgoing))
		for _, v := range a.outgoing {
			going[v.Machine.UID] = true
		}
		for _, m := range a.machines {
			if members.Leaving(m) || m.UID == "" || going[m.UID] {
				continue
			}
			o := &all[len(u.units)]
			o.of, o.machine = a, m
			o.node, o.known = c.in.nodeOf(m)
			o.stage = stageOf(m, o.node)
			o.available = a.isAvailable(m)
			u.units = append(u.units, o)
		}
	}
	return u
}

// old reports whether the machine is in an old set without a deletion timestamp.
func (o *updated) old() bool { return !o.of.isNew && !o.of.deleting }

// unknown reports whether the Node of an old machine was not read.
func (o *updated) unknown() bool { return o.old() && !o.known }

// failed reports whether the update of an old machine failed.
func (o *updated) failed() bool { return o.old() && o.stage == updateFailed }

// busy reports whether an old machine is being updated or is selected.
func (o *updated) busy() bool {
	return o.old() && (o.stage == updateStarted || selected(o.node) && o.stage != updateFailed)
}

// returning reports whether the machine is available and its Node is not uncordoned yet. Such a
// machine counts as available for deletions and not for selections.
func (o *updated) returning() bool { return o.available && selected(o.node) }

// cordonedNew returns the number of returning machines of the new set.
func (u *updates) cordonedNew() int64 {
	return u.count(func(o *updated) bool { return o.of.isNew && o.returning() })
}

// count returns the number of machines for which is returns true.
func (u *updates) count(is func(*updated) bool) int64 { return count(u.units, is) }

// arriving returns the number of old machines that will move to the new set: selected, being
// updated, or updated. Failed updates do not count.
func (u *updates) arriving() int64 {
	return u.count(func(o *updated) bool {
		switch o.stage {
		case updateStarted, updateDone:
			return o.old()
		case updateCandidate:
			return o.old() && selected(o.node)
		default:
			return false
		}
	})
}

// has returns the number of machines that the new set has or will have.
func (u *updates) has() int64 { return max(u.to.spec, int64(u.to.counts.Present)) }
