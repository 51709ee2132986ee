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
	c     *pass
	l     *ledger
	to    *account   // of the new set
	units []*updated // all that stay, by set and then by name
}

// updated is one machine, with its Node.
type updated struct {
	of        *account
	machine   *v1alpha1.Machine
	node      *corev1.Node // nil if it does not exist or is not known
	known     bool         // somebody has looked at the Node
	stage     UpdateStage
	available bool // and not about to be drained
}

// openUpdates looks at every machine that stays.
func (c *pass) openUpdates() *updates {
	u := &updates{c: c, l: c.ledger(), to: c.account(c.newSet)}
	n := 0
	for _, a := range c.accounts {
		n += len(a.machines)
	}
	all := make([]updated, n) // in one piece
	u.units = make([]*updated, 0, n)
	for _, a := range c.accounts {
		going := make(map[types.UID]bool, len(a.goers))
		for _, v := range a.goers {
			going[v.Machine.UID] = true
		}
		for _, m := range a.machines {
			if machineset.Leaving(m) || m.UID == "" || going[m.UID] {
				continue
			}
			o := &all[len(u.units)]
			o.of, o.machine = a, m
			o.node, o.known = c.nodeOf(m)
			o.stage = StageOf(m, o.node)
			o.available = c.available(a, m)
			u.units = append(u.units, o)
		}
	}
	return u
}

func (c *pass) updatesInPlace() bool {
	return c.d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
}

// noteUpdates finds the machines of a set whose update may begin at any moment, or
// has begun, so that they are not available whatever their phase is. It is asked
// often, and Nodes are looked at once.
func (c *pass) noteUpdates(a *account) {
	if !c.updatesInPlace() {
		return
	}
	for _, m := range a.machines {
		if node, _ := c.nodeOf(m); underWay(node, StageOf(m, node)) {
			if c.updating == nil {
				c.updating = map[*v1alpha1.Machine]bool{}
			}
			c.updating[m] = true
		}
	}
}

// underWay says whether an update in place may begin at any moment, or has begun.
// One that succeeded is not: its machine is worth as much as others, and is not to
// go as one of no use while its Node is still to be given back.
func underWay(node *corev1.Node, stage UpdateStage) bool {
	return stage == UpdateStarted || selected(node) && !succeeded(node)
}

// succeeded says whether the update of a Node succeeded.
func succeeded(node *corev1.Node) bool {
	return node.Labels[v1alpha1.LabelKeyNodeUpdateResult] == v1alpha1.LabelValueNodeUpdateSuccessful
}

// countUpdating returns how many machines of a set are counted as available and
// are not, because of their updates.
func (c *pass) countUpdating(a *account) int64 {
	if len(c.updating) == 0 {
		return 0
	}
	var n int64
	for _, m := range a.machines {
		if c.updating[m] && !machineset.Leaving(m) && machineset.AvailableFor(m, a.settling(), c.now) {
			n++
		}
	}
	return n
}

// old says whether the machine is of a set whose machines are to be updated.
func (o *updated) old() bool { return !o.of.isNew && !o.of.doomed }

// returning says whether the machine is available and its Node not given back to
// pods yet. It counts wherever machines go, and not yet where others are selected.
func (o *updated) returning() bool { return o.available && selected(o.node) }

// givingBack counts those of the new set.
func (u *updates) givingBack() int64 {
	return u.count(func(o *updated) bool { return o.of.isNew && o.returning() })
}

// count returns how many machines there are of a kind.
func (u *updates) count(is func(*updated) bool) int64 {
	var n int64
	for _, o := range u.units {
		if is(o) {
			n++
		}
	}
	return n
}

// arriving are the machines of old sets that are on their way to the new one:
// those that are selected, and those that are finished. Those whose update failed
// are not.
func (u *updates) arriving() int64 {
	return u.count(func(o *updated) bool {
		switch o.stage {
		case UpdateStarted, UpdateDone:
			return o.old()
		case UpdateCandidate:
			return o.old() && selected(o.node)
		default:
			return false
		}
	})
}

// has returns how many machines the new set has or is to have.
func (u *updates) has() int64 { return max(u.to.spec, int64(u.to.counts.Present)) }

// seesAll says whether a set has reported on its present spec, and that it sees as
// many machines as we do. It has then seen every move that we have.
func (a *account) seesAll() bool {
	return a.reported && int(a.set.Status.Replicas) == a.counts.Machines
}
