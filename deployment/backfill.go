// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// backfill gives adopted sets their template hash, one step in a pass, while
// everything else goes on. The order is such that no machine drops out of the
// selector at any time: first the template, so that new machines have the label;
// when the set has seen that, its machines; and when the set has seen all of
// these, its labels and its selector.
func (c *pass) backfill() {
	for i, a := range c.accounts {
		switch selector := a.set.Spec.Selector; {
		case a.doomed:
		case selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0:
			c.hold(a.set.Name, ReasonInvalid, "its selector is empty; nothing is added to it")
		case hashOf(selector.MatchLabels) == "":
			c.backfillSet(i, a)
		}
	}
}

func (c *pass) backfillSet(i int, a *account) {
	hash := c.freeHash(i)
	if hashOf(a.set.Spec.Template.Labels) != hash {
		a.next.Spec.Template.Labels = withHash(a.next.Spec.Template.Labels, hash)
		a.changes = append(a.changes, "its template gets the hash "+hash)
		return
	}
	if !a.reported {
		c.hold(a.set.Name, ReasonNoHash, "it has not seen the hash in its template yet")
		return
	}
	if left := c.labelMachines(a, hash); left > 0 {
		c.hold(a.set.Name, ReasonNoHash, fmt.Sprintf("%d of %d machines do not carry the hash yet", left, len(a.machines)))
		return
	}
	want, s := a.set.Spec.Replicas, a.set.Status
	if s.FullyLabeledReplicas != want || s.Replicas != want || a.counts.Machines != int(want) {
		c.hold(a.set.Name, ReasonNoHash, fmt.Sprintf("%d machines carry the hash, %d exist, %d are wanted", s.FullyLabeledReplicas, max(int(s.Replicas), a.counts.Machines), want))
		return
	}
	a.next.Labels = withHash(a.next.Labels, hash)
	a.next.Spec.Selector.MatchLabels = withHash(a.next.Spec.Selector.MatchLabels, hash)
	a.changes = append(a.changes, "it selects by the hash "+hash)
}

// labelMachines gives all machines of a set the hash, those that failed or leave
// too, and says how many do not have it yet.
func (c *pass) labelMachines(a *account, hash string) int {
	left := 0
	for _, m := range a.machines {
		if hashOf(m.Labels) == hash {
			continue
		}
		left++
		if c.mayEditMachine(m) {
			next := c.editMachine(m, "its set gets the hash "+hash)
			next.Labels = withHash(next.Labels, hash)
		}
	}
	return left
}

// freeHash returns the hash of the i-th set: the one in its template, if no other
// set has that, or else one that no other set has.
func (c *pass) freeHash(i int) string {
	used := map[string]bool{}
	for j, a := range c.accounts {
		if j == i {
			continue
		}
		if s := a.next.Spec.Selector; s != nil {
			used[hashOf(s.MatchLabels)] = true
		}
		if j < i {
			used[hashOf(a.next.Spec.Template.Labels)] = true
		}
	}
	template := c.accounts[i].set.Spec.Template
	if hash := hashOf(template.Labels); hash != "" && !used[hash] {
		return hash
	}
	collisions := c.d.Status.CollisionCount
	for n := int32(1); ; n++ {
		hash := TemplateHash(template, collisions)
		if !used[hash] {
			return hash
		}
		collisions = new(n)
	}
}

func hashOf(labels map[string]string) string {
	return labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey]
}
