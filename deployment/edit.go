// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// edits are the copies on which the rules of a pass work. Each rule changes the
// same copy, so that an object is written once, with all that has to change.
type edits struct {
	machines map[string]*edited[*v1alpha1.Machine] // by name
	nodes    map[string]*edited[*corev1.Node]      // by name
	later    int                                   // edits left for the next pass
	changes  []string                              // of the deployment
}

type edited[T any] struct {
	before, next T
	changes      []string
}

// editDeployment says what a rule has changed in c.d; what nobody says is not
// written.
func (c *pass) editDeployment(change string) { c.edits.changes = append(c.edits.changes, change) }

// editMachine returns the copy of a machine to change, and records why. It is
// written, unless the machine is another one than the one of that name which was
// edited before.
func (c *pass) editMachine(m *v1alpha1.Machine, change string) *v1alpha1.Machine {
	e := c.edits.machines[m.Name]
	switch {
	case e == nil:
		e = &edited[*v1alpha1.Machine]{before: m, next: m.DeepCopy()}
		if c.edits.machines == nil {
			c.edits.machines = map[string]*edited[*v1alpha1.Machine]{}
		}
		c.edits.machines[m.Name] = e
	case e.before.UID != m.UID:
		return m.DeepCopy()
	}
	e.changes = append(e.changes, change)
	return e.next
}

// editNode returns the copy of a Node to change, and records why. Only labels,
// annotations, taints and unschedulable may be changed; the rest is shared with
// the Node that was observed.
func (c *pass) editNode(n *corev1.Node, change string) *corev1.Node {
	e := c.edits.nodes[n.Name]
	if e == nil {
		next := *n
		next.Labels, next.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
		next.Spec.Taints = slices.Clone(n.Spec.Taints)
		e = &edited[*corev1.Node]{before: n, next: &next}
		if c.edits.nodes == nil {
			c.edits.nodes = map[string]*edited[*corev1.Node]{}
		}
		c.edits.nodes[n.Name] = e
	}
	e.changes = append(e.changes, change)
	return e.next
}

// mayEditNode says whether a Node may be edited by a rule whose edits can as well
// be made in the next pass: not if the pass edits as many objects already as it
// may write. What has to wait is counted.
func (c *pass) mayEditNode(n *corev1.Node) bool { return c.mayEdit(c.edits.nodes[n.Name] != nil) }

// mayEditMachine is the same for a machine.
func (c *pass) mayEditMachine(m *v1alpha1.Machine) bool {
	return c.mayEdit(c.edits.machines[m.Name] != nil)
}

func (c *pass) mayEdit(already bool) bool {
	if already || len(c.edits.machines)+len(c.edits.nodes) < c.policy.burst() {
		return true
	}
	c.edits.later++
	return false
}

// nodeOf returns the Node of a machine, and whether it is known: nil and true is
// a Node that does not exist.
func (c *pass) nodeOf(m *v1alpha1.Machine) (*corev1.Node, bool) {
	name := m.Labels[v1alpha1.NodeLabelKey]
	if name == "" {
		return nil, false
	}
	n, known := c.in.Nodes[name]
	if n != nil && n.Name != name {
		return nil, false
	}
	return n, known
}

// write makes actions of the edits: the deployment, then machines by name and a
// new set, then the sets that shrink, then those that grow, then what the rules
// asked for themselves, and Nodes last. So marks on machines are there before a set
// gets smaller, and no set waits for a Node that cannot be written. A set that is
// to be deleted is not written.
func (c *pass) write() {
	var actions []Action
	changed := len(c.edits.changes) > 0
	if changed && (!equality.Semantic.DeepEqual(c.d.ObjectMeta, c.in.Deployment.ObjectMeta) || !equality.Semantic.DeepEqual(c.d.Spec, c.in.Deployment.Spec)) {
		next := c.d.DeepCopy()
		next.Status = *c.in.Deployment.Status.DeepCopy()
		actions = append(actions, WriteDeployment{Deployment: next, Changes: c.edits.changes, Report: c.report})
	}
	actions = append(actions, c.writeMachinesAndNodes()...)
	actions = append(actions, c.out.Actions...)
	for _, a := range c.accounts {
		if !c.deletes(a.set) && a.edited() {
			actions = append(actions, WriteSet{Set: a.next, From: a.set.Spec.Replicas, Changes: a.changes})
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int { return cmp.Compare(rankOfAction(a), rankOfAction(b)) })
	c.out.Actions = actions
}

// deletes says whether a rule has asked for a set to be deleted.
func (c *pass) deletes(s *v1alpha1.MachineSet) bool {
	return slices.ContainsFunc(c.out.Actions, func(a Action) bool {
		d, ok := a.(DeleteSet)
		return ok && d.Name == s.Name
	})
}

func (c *pass) writeMachinesAndNodes() []Action {
	var actions []Action
	for _, name := range slices.Sorted(maps.Keys(c.edits.machines)) {
		e := c.edits.machines[name]
		if !equality.Semantic.DeepEqual(e.before, e.next) {
			actions = append(actions, WriteMachine{Machine: e.next, Changes: e.changes})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.edits.nodes)) {
		e := c.edits.nodes[name]
		if !sameNode(e.before, e.next) {
			actions = append(actions, WriteNode{Before: e.before, Node: e.next, Changes: e.changes})
		}
	}
	all := len(actions) + c.edits.later
	actions = actions[:min(len(actions), c.policy.burst())]
	if all > len(actions) {
		c.holdUntil(c.now.Add(time.Second), c.d.Name, ReasonBurst, fmt.Sprintf("%d of %d machines and Nodes are written in this pass", len(actions), all))
	}
	return actions
}

// sameNode compares what a pass may change.
func sameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		a.Spec.Unschedulable == b.Spec.Unschedulable && equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}

// rankOfAction is the order in which actions are carried out.
func rankOfAction(a Action) int {
	switch a := a.(type) {
	case Look, WriteDeployment:
		return 0
	case WriteMachine, CreateSet: // nothing shrinks for a set that cannot be created
		return 1
	case WriteNode: // nothing waits for a Node that cannot be written
		return 5
	case WriteSet:
		if a.Set.Spec.Replicas > a.From {
			return 3
		}
		return 2
	default:
		return 4
	}
}

// Patch returns the JSON merge patch that turns the Node as it was observed into
// the edited one. It carries the UID and the resource version, so that it fails
// if the Node has changed in between.
func (a WriteNode) Patch() ([]byte, error) {
	if a.Before == nil || a.Node == nil {
		return nil, fmt.Errorf("%w: nothing to patch", ErrNoNode)
	}
	metadata := map[string]any{"uid": a.Before.UID, "resourceVersion": a.Before.ResourceVersion}
	if changed := diff(a.Before.Labels, a.Node.Labels); len(changed) > 0 {
		metadata["labels"] = changed
	}
	if changed := diff(a.Before.Annotations, a.Node.Annotations); len(changed) > 0 {
		metadata["annotations"] = changed
	}
	spec := map[string]any{}
	if !equality.Semantic.DeepEqual(a.Before.Spec.Taints, a.Node.Spec.Taints) {
		taints := a.Node.Spec.Taints
		if taints == nil {
			taints = []corev1.Taint{}
		}
		spec["taints"] = taints
	}
	if a.Before.Spec.Unschedulable != a.Node.Spec.Unschedulable {
		spec["unschedulable"] = a.Node.Spec.Unschedulable
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding patch of node %s: %w", a.Before.Name, err)
	}
	return data, nil
}

// diff returns what a merge patch has to say about a map.
func diff(before, after map[string]string) map[string]any {
	changed := map[string]any{}
	for k := range before {
		if _, ok := after[k]; !ok {
			changed[k] = nil
		}
	}
	for k, v := range after {
		if now, ok := before[k]; !ok || now != v {
			changed[k] = v
		}
	}
	return changed
}
