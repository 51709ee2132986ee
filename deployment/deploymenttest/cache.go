// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A cache is the view of a controller. Its objects are replaced and never modified, so that caches
// share them.
type cache struct {
	sets     table[*v1alpha1.MachineSet]
	machines table[*v1alpha1.Machine]
	owned    map[types.UID]*table[*v1alpha1.Machine] // by controller; "" for those without one
	nodes    map[string]*corev1.Node                 // nil for a Node that a machine names and that does not exist
}

func newCache() *cache {
	return &cache{owned: map[types.UID]*table[*v1alpha1.Machine]{}, nodes: map[string]*corev1.Node{}}
}

func (c *cache) clone() *cache {
	next := newCache()
	next.sets, next.machines = c.sets.clone(), c.machines.clone()
	for uid, t := range c.owned {
		copied := t.clone()
		next.owned[uid] = &copied
	}
	maps.Copy(next.nodes, c.nodes)
	return next
}

// show adds, replaces or removes an object.
func (c *cache) show(n news) {
	switch n.kind {
	case kindDeployment: // which is always read live
	case kindSet:
		if n.set == nil {
			c.sets.remove(n.name)
		} else {
			c.sets.put(n.name, n.set)
		}
	case kindMachine:
		c.showMachine(n.name, n.machine)
	case kindNode:
		c.nodes[n.name] = n.node
	}
}

func (c *cache) showMachine(name string, next *v1alpha1.Machine) {
	before := c.machines.get(name)
	if before != nil && (next == nil || ownerOf(before) != ownerOf(next)) {
		c.owned[ownerOf(before)].remove(name)
	}
	if next == nil {
		c.machines.remove(name)
		if before != nil && c.nodes[nodeName(before)] == nil {
			delete(c.nodes, nodeName(before))
		}
		return
	}
	c.machines.put(name, next)
	owner := ownerOf(next)
	if c.owned[owner] == nil {
		c.owned[owner] = &table[*v1alpha1.Machine]{}
	}
	c.owned[owner].put(name, next)
	if node := nodeName(next); node != "" && c.nodes[node] == nil {
		c.nodes[node] = nil // which says that it was looked for
	}
}

// find returns an object of a kind and name, of any deployment.
func (c *cache) find(kind, name string) metav1.Object {
	switch kind {
	case kindSet:
		return c.sets.get(name)
	case kindMachine:
		return c.machines.get(name)
	case kindNode:
		return c.nodes[name]
	default:
		return nil
	}
}

// mayBelongTo returns the machines of a set and those without a controller.
func (c *cache) mayBelongTo(set types.UID) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, uid := range []types.UID{set, ""} {
		if t := c.owned[uid]; t != nil {
			out = append(out, t.list()...)
		}
	}
	return out
}

func ownerOf(m *v1alpha1.Machine) types.UID {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return owner.UID
	}
	return ""
}

func nodeName(m *v1alpha1.Machine) string { return m.Labels[v1alpha1.NodeLabelKey] }

// news is a change of an object. after is nil if the object does not exist any more.
type news struct {
	kind    string
	name    string
	set     *v1alpha1.MachineSet
	machine *v1alpha1.Machine
	node    *corev1.Node
}

// A follower is a cache that is stale. Changes of one kind appear in their order, and changes of
// different kinds independently.
type follower struct {
	*cache
	waiting map[string][]news
}

// advance shows the changes except the last few of each kind, and reports whether any are left.
func (f *follower) advance(lag func(string) int) bool {
	left := false
	for _, kind := range []string{kindSet, kindMachine, kindNode} {
		queue := f.waiting[kind]
		if len(queue) == 0 {
			continue
		}
		show := max(0, len(queue)-max(0, lag(kind)))
		for _, n := range queue[:show] {
			f.show(n)
		}
		f.waiting[kind] = queue[show:]
		left = left || show < len(queue)
	}
	return left
}
