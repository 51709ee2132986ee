// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// NewSet returns the set to create for the template of a deployment, with the
// given number of replicas. Its name follows from the template and the
// collision count of the deployment, so that creating it twice fails. It is nil
// for a nil deployment.
func NewSet(d *v1alpha1.MachineDeployment, old []*v1alpha1.MachineSet, replicas int32) *v1alpha1.MachineSet {
	if d == nil {
		return nil
	}
	spec := d.Spec.DeepCopy()
	hash := TemplateHash(spec.Template, d.Status.CollisionCount)
	s := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            SetName(d.Name, hash),
			Namespace:       d.Namespace,
			Labels:          withHash(spec.Template.Labels, hash),
			OwnerReferences: []metav1.OwnerReference{machineset.OwnerDeployment(d).Reference()},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas:                     replicas,
			Selector:                     spec.Selector,
			Template:                     spec.Template,
			MinReadySeconds:              spec.MinReadySeconds,
			AutoPreserveFailedMachineMax: spec.AutoPreserveFailedMachineMax,
		},
	}
	if s.Spec.Selector == nil {
		s.Spec.Selector = &metav1.LabelSelector{}
	}
	s.Spec.Selector.MatchLabels = withHash(s.Spec.Selector.MatchLabels, hash)
	s.Spec.Template.Labels = withHash(s.Spec.Template.Labels, hash)
	s.Annotations, _ = NewSetAnnotations(d, nil, nextRevision(old), false)
	return s
}

func withHash(labels map[string]string, hash string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[v1alpha1.DefaultMachineDeploymentUniqueLabelKey] = hash
	return out
}

// create asks for the new set, which does not exist, with the size that there
// is room for, and returns it; nil if it is not created.
func (c *pass) create(l *ledger) *v1alpha1.MachineSet {
	if c.frozen() {
		return nil
	}
	if c.releasedTooMany() {
		return nil
	}
	room, silent, _ := l.room(nil)
	s := NewSet(c.d, c.old, narrow(min(room, l.desired)))
	message := fmt.Sprintf("%d machines, %d allowed", l.total(), l.desired+l.surge)
	if silent != nil {
		message = fmt.Sprintf("%s has not reported yet", silent.Name)
	}
	if taken := c.in.NameTakenBy; taken != nil && taken.Name == s.Name && taken.Namespace == s.Namespace {
		c.collide(taken)
		return nil
	}
	c.add(CreateSet{Set: s, Message: message})
	c.created = s
	c.progress(v1alpha1.NewMachineSetCreated, fmt.Sprintf("Created new machine set %q", s.Name))
	c.out.Reason = ReasonNewSet
	return s
}

// collide deals with a set that has the name of the new one.
func (c *pass) collide(taken *v1alpha1.MachineSet) {
	owner := metav1.GetControllerOf(taken)
	if owner != nil && owner.UID == c.d.UID && EqualIgnoreHash(taken.Spec.Template, c.d.Spec.Template) {
		c.holdUntil(c.now.Add(c.policy.recheck()), taken.Name, ReasonNameTaken, "the set exists already and is not among the sets that were seen")
		return
	}
	c.out.Reason = ReasonNameTaken
	c.holdUntil(c.now.Add(c.policy.recheck()), c.d.Name, ReasonNameTaken, fmt.Sprintf("%s exists and is another set; the next attempt takes another name", taken.Name))
	count := int32(1)
	if n := c.d.Status.CollisionCount; n != nil {
		count += *n
	}
	c.d.Status.CollisionCount = &count
	c.counters()
}

// maxReleased is how many sets that were let go, and have machines, are replaced.
const maxReleased = 1

// releasedTooMany holds the creation of a set if whatever takes away the labels of
// sets would make the deployment create them for ever.
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
	// They are not ours, so their changes may not tell us.
	c.holdUntil(c.now.Add(c.policy.recheck()), first, ReasonReleased,
		fmt.Sprintf("%d sets that lost their labels and were released still have machines, and %d of those is replaced", n, maxReleased))
	return true
}

// frozen holds growth of a deployment that has the freeze label.
func (c *pass) frozen() bool {
	if c.d.Labels[v1alpha1.FreezeLabelKey] != "True" {
		return false
	}
	c.hold(c.d.Name, ReasonFrozen, "label freeze=True: no set is created and none grows")
	return true
}
