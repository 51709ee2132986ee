// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// resize plans a size, and reports whether the set changes.
func (c *pass) resize(a *account, to int64, message string) bool {
	a.spec = to
	if rollout.Narrow(to) == a.set.Spec.Replicas {
		return false
	}
	c.size(a, rollout.Narrow(to), message)
	return true
}

// size sets the replicas of a set, the names of the machines to delete, and the annotations with
// the replicas. Machines that cannot be named stay.
func (c *pass) size(a *account, to int32, message string) {
	if left := c.name(a, int64(to)); left > 0 {
		to = rollout.Narrow(min(int64(to)+int64(left), int64(a.set.Spec.Replicas)))
		a.spec = int64(to)
		c.hold("machineset/"+a.set.Name, reasonBurst, "the annotation of the set is full: no more machines can be named for deletion in one decision")
	}
	a.next.Spec.Replicas, a.why = to, message
	a.next.Annotations = k8slabels.Merge(a.next.Annotations, rollout.ReplicaAnnotations(c.d))
	a.changes = append(a.changes, message)
}

// sizeNewSet brings the new set closer to the replicas, and reports whether it changes.
func (c *pass) sizeNewSet() bool {
	a, desired := c.ledger.of(c.newSet), c.ledger.Desired
	switch {
	case a.deleting:
		c.hold("machineset/"+c.newSet.Name, reasonSetDeleting, "the set of the present template is being deleted; another one is created when it is gone")
		return false
	case a.spec > desired:
		return c.shrink(a, desired, fmt.Sprintf("%d > %d replicas", a.spec, desired), surplus)
	case a.spec < desired:
		return c.grow(a, desired)
	default:
		return false
	}
}

// shrink brings a set closer to a smaller size, as far as the rule allows, and reports whether it
// changes.
func (c *pass) shrink(a *account, size int64, message string, rule cutRule) bool {
	changed := c.take(a, a.spec-size, rule) > 0 && c.resize(a, a.spec, message)
	if a.spec > size {
		c.holdAvailability(a)
	}
	return changed
}

// grow brings a set closer to a larger size, as far as the bounds allow, and reports whether it
// changes.
func (c *pass) grow(a *account, size int64) bool {
	if c.frozen() {
		return false
	}
	if a.scaleUpDisabled { // it starts again with its present machines
		a.scaleUpDisabled, a.spec = false, min(a.spec, int64(a.counts.Present))
	}
	l := c.ledger
	room, total := l.mayGrow(), l.total()
	switch silent := l.unreported(); {
	case members.Frozen(a.set):
		c.hold("machineset/"+a.set.Name, ReasonFrozen, fmt.Sprintf("label freeze=True: the set stays at %d replicas", a.spec))
	case silent != nil:
		c.hold("machineset/"+silent.set.Name, reasonSetNotReported, fmt.Sprintf("%s; set %s does not grow until then", notReported(silent.set), a.set.Name))
	case a.replicas > a.spec+a.leaving: // otherwise it would create machines in addition to those that it deletes
		c.hold("machineset/"+a.set.Name, reasonWaitingForMachines, fmt.Sprintf("%s, %d wanted; it does not grow until the others are gone", machines(a.replicas), a.spec))
	case room == 0:
		c.hold("machineset/"+a.set.Name, reasonSurgeUsedUp, fmt.Sprintf("%s >= %s", machines(total), l.limit()))
	default:
		if members.ScaleUpDisabled(a.next) {
			delete(a.next.Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
			a.changes = append(a.changes, "it may create machines again")
		}
		return c.resize(a, min(size, a.spec+room), fmt.Sprintf("%s < %s", machines(total), l.limit()))
	}
	return false
}

// holdAvailability holds a set whose machines may not be deleted now.
func (c *pass) holdAvailability(a *account) {
	l := c.ledger
	if b := l.unreported(); b != nil {
		c.hold("machineset/"+b.set.Name, reasonSetNotReported, fmt.Sprintf("%s; set %s does not shrink until then", notReported(b.set), a.set.Name))
		return
	}
	if l.mayLose() <= 0 {
		c.hold("machineset/"+a.set.Name, reasonMinimumAvailable, fmt.Sprintf("%s available <= %d replicas - %d max unavailable", machines(l.available()), l.Desired, l.Unavailable))
	}
}

func notReported(s *v1alpha1.MachineSet) string {
	return fmt.Sprintf("its status is of generation %[2]d, its spec of generation %[1]d", s.Generation, s.Status.ObservedGeneration)
}

// create creates the new set with the size that the bounds allow besides reserved machines. It
// returns the set, or nil if it is not created.
func (c *pass) create(reserved int64) *v1alpha1.MachineSet {
	if c.frozen() || c.releasedTooMany() {
		return nil
	}
	l := c.ledger
	s := buildSet(c.d, c.old, rollout.Narrow(min(max(0, l.mayGrow()-reserved), l.Desired)))
	if hold, _ := c.autoscalerMarks(); hold {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, facts.JoinHeldAnnotation, labelTrue)
	}
	message := fmt.Sprintf("%s, %d allowed", machines(l.total()), l.Most()-reserved)
	if silent := l.unreported(); silent != nil {
		message = fmt.Sprintf("the status of set %s is not of its present spec", silent.set.Name)
	}
	if taken := c.in.NameTakenBy; taken != nil && taken.Name == s.Name && taken.Namespace == s.Namespace {
		c.collide(taken)
		return nil
	}
	c.add(machinist.Create{Object: s, Message: fmt.Sprintf("%s (%s)", replicas(int64(s.Spec.Replicas)), message), Report: scaled(s, 0)})
	c.d.Status.Conditions = rollout.WithStep(c.d.Status.Conditions, v1alpha1.NewMachineSetCreated, fmt.Sprintf("Created new machine set %q", s.Name), c.now)
	c.out.Reason = reasonNewSet
	return s
}

// collide handles a set that has the name of the new one.
func (c *pass) collide(taken *v1alpha1.MachineSet) {
	owner := metav1.GetControllerOf(taken)
	if owner != nil && owner.UID == c.d.UID && rollout.EqualIgnoreHash(taken.Spec.Template, c.d.Spec.Template) {
		c.holdUntil(c.now.Add(recheck), "machineset/"+taken.Name, reasonNameTaken, "the set exists already, but it was not observed")
		return
	}
	c.out.Reason = reasonNameTaken
	c.holdUntil(c.now.Add(recheck), "machinedeployment/"+c.d.Name, reasonNameTaken, fmt.Sprintf("set %s exists and is another one; the next attempt uses another name", taken.Name))
	count := int32(1)
	if n := c.d.Status.CollisionCount; n != nil {
		count += *n
	}
	c.d.Status.CollisionCount = &count
	c.counters()
}

// maxReleased is the maximum number of released sets with machines that are replaced.
const maxReleased = 1

// releasedTooMany holds the creation of a set if another client removes the labels of each new set.
// Otherwise sets would be created forever.
func (c *pass) releasedTooMany() bool {
	n, first := 0, ""
	for _, s := range c.in.Released {
		if s == nil || s.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(s) != nil || s.Spec.Replicas <= 0 && s.Status.Replicas <= 0 {
			continue
		}
		if n++; first == "" || s.Name < first {
			first = s.Name
		}
	}
	if n <= maxReleased {
		return false
	}
	// A change of a set without owner may cause no reconciliation.
	c.holdUntil(c.now.Add(recheck), "machineset/"+first, reasonReleased,
		fmt.Sprintf("%d released sets without the labels of the deployment still have machines; at most %d of them is replaced", n, maxReleased))
	return true
}
