// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// nominate makes the Nodes of old machines candidates, up to the maximum of writes of a pass.
// Unknown Nodes and Nodes of failed machines are skipped.
func (u *updates) nominate() {
	left := u.c.editsLeft()
	for _, o := range u.units {
		if left <= 0 {
			return
		}
		if !o.old() || o.node == nil || o.stage == updateMoved || members.Failed(o.machine) || hasLabel(o.node, v1alpha1.LabelKeyNodeCandidateForUpdate) {
			continue
		}
		u.c.labelNode(o.node, v1alpha1.LabelKeyNodeCandidateForUpdate, "candidate for an update in place")
		left--
	}
}

func (c *pass) labelNode(node *corev1.Node, key, why string) {
	metav1.SetMetaDataLabel(&c.editNode(node, why).ObjectMeta, key, labelTrue)
}

// selectByHand says what a user has to do for an update with manual orchestration.
const selectByHand = "a user has to add the label " + v1alpha1.LabelKeyNodeSelectedForUpdate + " to those that may be updated now"

// selectNodes selects as many candidates as the bounds allow. With manual orchestration a user
// selects them.
func (u *updates) selectNodes() {
	candidates := u.count((*updated).candidate)
	want := u.l.Desired - u.has() - u.arriving()
	switch {
	case candidates == 0 || want <= 0:
	case u.manual:
		u.holdFirst((*updated).candidate, reasonGate, "%d node is a candidate for an update in place; "+selectByHand, "%d nodes are candidates for an update in place; "+selectByHand)
		return
	default:
		if u.choose(want) > 0 || u.surgeAgain() {
			return
		}
	}
	u.holdProgress(candidates)
}

// candidate reports whether a machine may be selected: its Node is a candidate, and it is neither
// failed nor about to become available.
func (o *updated) candidate() bool {
	return o.old() && o.stage == updateCandidate && !selected(o.node) &&
		!members.Failed(o.machine) && (o.available || !joining(o.machine))
}

// joining reports whether a machine is about to become available.
func joining(m *v1alpha1.Machine) bool {
	phase := m.Status.CurrentStatus.Phase
	traits := facts.TraitsOf(phase)
	return !traits.Trouble && !traits.Updating && phase != v1alpha1.MachineTerminating
}

// choose selects the Nodes of up to want candidates, and returns their number. Unavailable machines
// are first, as many at a time as may be unavailable, so that a bad update stops. Available ones
// are selected while enough others are available on uncordoned Nodes. Within a set the order is
// that of replacements.
func (u *updates) choose(want int64) int64 {
	first := u.choosePart(false, min(want, u.mayBeBroken()), 0, unavailableOnly)
	spare := u.l.mayLose() - u.count((*updated).returning)
	return first + u.choosePart(true, want-first, spare, withAvailable)
}

func (u *updates) choosePart(available bool, n, spare int64, how cutRule) int64 {
	chosen := int64(0)
	for _, a := range u.c.ledger.accounts {
		var from []*v1alpha1.Machine
		for _, o := range u.units {
			if o.of == a && o.available == available && o.candidate() {
				from = append(from, o.machine)
			}
		}
		for _, v := range u.c.choose(a, from, n-chosen, spare-chosen, how, true) {
			node, _ := u.c.in.nodeOf(v.Machine) // a candidate has a Node
			u.c.labelNode(node, v1alpha1.LabelKeyNodeSelectedForUpdate, "selected for an update in place")
			chosen++
		}
	}
	return chosen
}

// mayBeBroken returns how many unavailable machines may be selected. Each unavailable machine of
// the new set, each machine that is being updated, and each failed update count against
// maxUnavailable.
func (u *updates) mayBeBroken() int64 {
	return u.l.planned() - u.l.Least() - max(0, u.has()-u.to.guaranteed()+u.cordonedNew()) - u.arriving() - u.count((*updated).failed)
}

// surgeAgain gives an existing new set the surge that it was not created with. It does so if no
// machine may be unavailable and no machine has moved for 5 minutes, because no update could begin
// otherwise. It reports whether the set grows.
func (u *updates) surgeAgain() bool {
	const patience = 5 * time.Minute
	cond := rollout.Condition(u.c.d.Status, v1alpha1.MachineDeploymentProgressing)
	room := min(u.l.Most()-u.l.planned(), u.l.Desired-u.to.spec)
	if u.l.Unavailable > 0 || room <= 0 || u.arriving() > 0 || !u.l.allSettled() || cond == nil {
		return false
	}
	if at := cond.LastUpdateTime.Add(patience); at.After(u.c.now) {
		u.c.holdUntil(at, "machineset/"+u.to.set.Name, reasonMinimumAvailable, "no machine may be unavailable; if no update in place ends until then, "+plural(room, "%d machine is created", "%d machines are created"))
		return false
	}
	return u.c.grow(u.to, u.to.spec+room)
}

// holdProgress holds the machines that are being updated, or says why none is selected.
func (u *updates) holdProgress(candidates int64) {
	busy := u.count((*updated).busy)
	switch available := u.l.available() - u.count((*updated).returning); {
	case busy > 0:
		u.holdFirst((*updated).busy, reasonUpdating, "%d machine is being updated in place", "%d machines are being updated in place")
	case candidates > 0 && available <= u.l.Least():
		u.c.hold("machineset/"+u.to.set.Name, reasonMinimumAvailable, fmt.Sprintf("%s available <= %d replicas - %d max unavailable", machines(available), u.l.Desired, u.l.Unavailable))
	}
	switch {
	case u.count((*updated).failed) > 0:
		u.holdFirst((*updated).failed, reasonUpdating, "the update in place of %d machine failed", "the update in place of %d machines failed")
	case busy == 0 && candidates == 0:
		u.holdFirst((*updated).old, reasonWaitingForMachines, "%d old machine is left, and it may not be updated now", "%d old machines are left, and none may be updated now")
	}
}

// holdFirst holds the first machine for which is returns true, with the number of all. One and many are
// the forms of the message.
func (u *updates) holdFirst(is func(*updated) bool, r machinist.Reason, one, many string) {
	if i := slices.IndexFunc(u.units, is); i >= 0 {
		u.c.hold("machine/"+u.units[i].machine.Name, r, plural(u.count(is), one, many))
	}
}
