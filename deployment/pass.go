// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// pass is one decision in the making. Each rule edits the same copies, so that an object is written
// once with all its changes.
type pass struct {
	in     Observation
	policy Policy
	now    time.Time
	order  machineset.Order
	d      *v1alpha1.MachineDeployment // the new state
	newSet *v1alpha1.MachineSet        // as observed
	old    []*v1alpha1.MachineSet      // as observed
	ledger *ledger

	changes  []string                              // in d
	report   *machinist.Event                      // for the write of d
	machines map[string]*edited[*v1alpha1.Machine] // by name
	nodes    map[string]*edited[*corev1.Node]      // by name
	later    int                                   // number of edits for later decisions
	allowed  map[types.UID]bool                    // the results of the gates, by machine
	refusals int                                   // number of machines that the gates refused
	out      Decision
}

// edited is an object before and after the edits of a pass.
type edited[T any] struct {
	before, next T
	changes      []string
}

func (c *pass) add(a machinist.Action) { c.out.Actions = append(c.out.Actions, a) }

// hold adds a hold without an end.
func (c *pass) hold(subject string, r machinist.Reason, message string) {
	c.holdUntil(time.Time{}, subject, r, message)
}

// holdUntil adds a hold that ends at a time.
func (c *pass) holdUntil(until time.Time, subject string, r machinist.Reason, message string) {
	c.out.Holds = append(c.out.Holds, machinist.Hold{Subject: subject, Reason: r, Message: message, Until: until})
}

// stop sets the reason of the decision and holds the deployment.
func (c *pass) stop(r machinist.Reason, message string) {
	c.out.Reason = r
	c.hold("machinedeployment/"+c.d.Name, r, message)
}

// look requests the next decision at a time, if that is after now.
func (c *pass) look(at time.Time) {
	if at.After(c.now) {
		c.out.NextCheck = machinist.Earliest(c.out.NextCheck, at)
	}
}

// changing reports whether the pass changes a set. The rollout is not complete then.
func (c *pass) changing() bool {
	return len(c.out.Actions) > 0 || slices.ContainsFunc(c.ledger.accounts, (*account).differs)
}

// frozen reports whether no set may grow, because of the freeze label or because the API servers do
// not answer. It adds the hold.
func (c *pass) frozen() bool {
	if c.in.Freeze.Frozen {
		if h := c.in.Freeze.Hold(c.now); !slices.Contains(c.out.Holds, h) {
			c.out.Holds = append(c.out.Holds, h)
		}
		return true
	}
	if c.d.Labels[v1alpha1.FreezeLabelKey] != "True" {
		return false
	}
	c.hold("machinedeployment/"+c.d.Name, ReasonFrozen, "label freeze=True: no set is created and none grows")
	return true
}

// editDeployment records an edit of c.d. Without a record the deployment is not written.
func (c *pass) editDeployment(change string) { c.changes = append(c.changes, change) }

// editMachine returns the copy of a machine to edit, and records the change. Edits of a second
// machine with the same name are not written.
func (c *pass) editMachine(m *v1alpha1.Machine, change string) *v1alpha1.Machine {
	e := c.machines[m.Name]
	switch {
	case e == nil:
		e = &edited[*v1alpha1.Machine]{before: m, next: m.DeepCopy()}
		if c.machines == nil {
			c.machines = map[string]*edited[*v1alpha1.Machine]{}
		}
		c.machines[m.Name] = e
	case e.before.UID != m.UID:
		return m.DeepCopy()
	}
	e.changes = append(e.changes, change)
	return e.next
}

// edited returns a machine with the edits of this pass.
func (c *pass) edited(m *v1alpha1.Machine) *v1alpha1.Machine {
	if e := c.machines[m.Name]; e != nil && e.before.UID == m.UID {
		return e.next
	}
	return m
}

// editNode returns the copy of a Node to edit, and records the change. Only labels, annotations,
// taints and unschedulable may be edited; the rest is shared with the observed Node.
func (c *pass) editNode(n *corev1.Node, change string) *corev1.Node {
	e := c.nodes[n.Name]
	if e == nil {
		next := *n
		next.Labels, next.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
		next.Spec.Taints = slices.Clone(n.Spec.Taints)
		e = &edited[*corev1.Node]{before: n, next: &next}
		if c.nodes == nil {
			c.nodes = map[string]*edited[*corev1.Node]{}
		}
		c.nodes[n.Name] = e
	}
	e.changes = append(e.changes, change)
	return e.next
}

// mayEditNode reports whether a Node may be edited now. Otherwise the pass has reached its maximum
// of writes, the Node is counted, and a later pass edits it.
func (c *pass) mayEditNode(n *corev1.Node) bool {
	if c.nodes[n.Name] != nil || c.editsLeft() > 0 {
		return true
	}
	c.later++
	return false
}

// editsLeft returns how many more machines and Nodes the pass may edit.
func (c *pass) editsLeft() int {
	return c.policy.burst(len(c.in.Machines)) - len(c.machines) - len(c.nodes)
}

// write adds the actions of all edits in their order: the deployment, machines and a new set, sets
// that shrink, sets that grow, other actions, Nodes. So machines are marked before their set
// shrinks, and no set waits for a Node that cannot be written.
func (c *pass) write() {
	var actions []machinist.Action
	if len(c.changes) > 0 && (!equality.Semantic.DeepEqual(c.d.ObjectMeta, c.in.Deployment.ObjectMeta) || !equality.Semantic.DeepEqual(c.d.Spec, c.in.Deployment.Spec)) {
		next := c.d.DeepCopy()
		next.Status = *c.in.Deployment.Status.DeepCopy()
		actions = append(actions, machinist.Update{Before: c.in.Deployment, Object: next, Unchanged: true, Changes: c.changes, Report: c.report})
	}
	actions = append(actions, c.writeMachinesAndNodes()...)
	actions = append(actions, c.out.Actions...)
	if c.ledger != nil {
		for _, a := range c.ledger.accounts {
			if a.differs() {
				actions = append(actions, updateSet(a.set, a.next, a.changes))
			}
		}
	}
	slices.SortStableFunc(actions, func(a, b machinist.Action) int { return cmp.Compare(rankOfAction(a), rankOfAction(b)) })
	c.out.Actions = actions
}

func (c *pass) writeMachinesAndNodes() []machinist.Action {
	var actions []machinist.Action
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		e := c.machines[name]
		if !equality.Semantic.DeepEqual(e.before, e.next) {
			actions = append(actions, machinist.Update{Before: e.before, Object: e.next, Unchanged: true, Changes: e.changes})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		e := c.nodes[name]
		if !sameNode(e.before, e.next) {
			actions = append(actions, machinist.Update{Before: e.before, Object: e.next, Unchanged: true, Changes: e.changes})
		}
	}
	all := len(actions) + c.later
	actions = actions[:min(len(actions), c.policy.burst(len(c.in.Machines)))]
	if all > len(actions) {
		c.holdUntil(c.now.Add(time.Second), "machinedeployment/"+c.d.Name, reasonBurst, fmt.Sprintf("%d of %d machines and nodes are written in this pass", len(actions), all))
	}
	return actions
}

// sameNode compares the fields that a pass may edit.
func sameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		a.Spec.Unschedulable == b.Spec.Unschedulable && equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}

// updateSet returns the update of a set. The changes begin with its size, if that changes.
func updateSet(before, next *v1alpha1.MachineSet, changes []string) machinist.Update {
	if from, to := before.Spec.Replicas, next.Spec.Replicas; from != to {
		changes = slices.Insert(slices.Clone(changes), 0, fmt.Sprintf("from %d to %d replicas", from, to))
	}
	return machinist.Update{Before: before, Object: next, Unchanged: true, Changes: changes, Report: scaled(next, before.Spec.Replicas)}
}

// scaled returns the Event for a new size of a set, or nil if the size does not change.
func scaled(s *v1alpha1.MachineSet, from int32) *machinist.Event {
	if s.Spec.Replicas == from {
		return nil
	}
	direction := "up"
	if s.Spec.Replicas < from {
		direction = "down"
	}
	return &machinist.Event{Type: eventNormal, Reason: eventScaled, Message: fmt.Sprintf("Scaled %s machine set %s to %d", direction, s.Name, s.Spec.Replicas)}
}

// rankOfAction returns the place of an action in the order.
func rankOfAction(a machinist.Action) int {
	switch a := a.(type) {
	case machinist.Refresh:
		return 0
	case machinist.Create: // no set shrinks if the new set cannot be created
		return 1
	case machinist.Update:
		switch o := a.Object.(type) {
		case *v1alpha1.MachineDeployment:
			return 0
		case *v1alpha1.Machine:
			return 1
		case *v1alpha1.MachineSet:
			if before, ok := a.Before.(*v1alpha1.MachineSet); ok && o.Spec.Replicas > before.Spec.Replicas {
				return 3
			}
			return 2
		case *corev1.Node: // no other action waits for a Node that cannot be written
			return 5
		}
	}
	return 4
}
