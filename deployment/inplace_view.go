// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// updates are the machines of a deployment as an update in place sees them, each
// once.
type updates struct {
	c      *pass
	l      *ledger
	to     *account   // of the new set
	units  []*updated // all that stay, by set and then by name
	manual bool       // the user selects the Nodes
}

// updated is one machine, with its Node.
type updated struct {
	of        *account
	machine   *v1alpha1.Machine
	node      *corev1.Node // nil if it does not exist or is not known
	known     bool         // the Node was read
	stage     updateStage
	available bool // and not about to be drained
}

// openUpdates looks at every machine that stays.
func (c *pass) openUpdates() *updates {
	u := &updates{c: c, l: c.ledger, to: c.ledger.of(c.newSet)}
	_, u.manual, _ = updateOf(c.d.Spec.Strategy)
	n := 0
	for _, a := range c.ledger.accounts {
		n += len(a.machines)
	}
	all := make([]updated, n) // in one piece
	u.units = make([]*updated, 0, n)
	for _, a := range c.ledger.accounts {
		going := make(map[types.UID]bool, len(a.outgoing))
		for _, v := range a.outgoing {
			going[v.Machine.UID] = true
		}
		for _, m := range a.machines {
			if machineset.Leaving(m) || m.UID == "" || going[m.UID] {
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

// old reports whether the machine is of a set whose machines are to be updated.
func (o *updated) old() bool { return !o.of.isNew && !o.of.deleting }

// unknown reports whether the Node of an old machine was not read.
func (o *updated) unknown() bool { return o.old() && !o.known }

// failed reports whether the update of an old machine failed.
func (o *updated) failed() bool { return o.old() && o.stage == updateFailed }

// busy reports whether an old machine is being updated, or about to be.
func (o *updated) busy() bool {
	return o.old() && (o.stage == updateStarted || selected(o.node) && o.stage != updateFailed)
}

// returning reports whether the machine is available and its Node not given back to
// pods yet. It counts wherever machines go, and not yet where others are selected.
func (o *updated) returning() bool { return o.available && selected(o.node) }

// cordonedNew counts those of the new set.
func (u *updates) cordonedNew() int64 {
	return u.count(func(o *updated) bool { return o.of.isNew && o.returning() })
}

// count returns how many machines there are of a kind.
func (u *updates) count(is func(*updated) bool) int64 { return count(u.units, is) }

// arriving are the machines of old sets that are on their way to the new one:
// those that are selected, and those that are finished. Those whose update failed
// are not.
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

// has returns how many machines the new set has or is to have.
func (u *updates) has() int64 { return max(u.to.spec, int64(u.to.counts.Present)) }
