// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collectDependentsOf deletes the dependents of an owner that has gone, unless another owner of theirs is still there;
// then they lose the reference only.
func (c *Cluster) collectDependentsOf(owner types.UID) {
	for _, key := range ordered(c.index.dependents[owner]) {
		c.collect(key)
	}
}

// collectDangling deletes what was created with a reference to an owner that had gone before. References to owners
// which this cluster never had are left alone: a test may well have pods without their replica set.
func (c *Cluster) collectDangling() {
	for _, owner := range slices.Sorted(maps.Keys(c.index.dependents)) {
		if _, gone := c.index.gone[owner]; gone {
			c.collectDependentsOf(owner)
		}
	}
}

// collect deals with one dependent of an owner that has gone.
func (c *Cluster) collect(key objectKey) {
	k := c.kinds[key.resource]
	if k == nil {
		return
	}
	obj, err := c.get(k, key.namespace, key.name)
	if err != nil {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(ownersOf(obj)), c.isGone)
	if slices.ContainsFunc(kept, c.isThere) {
		c.setOwners(k, key, kept)
		return
	}
	if m, err := meta.Accessor(obj); err != nil || m.GetDeletionTimestamp() != nil {
		return
	}
	req := request{actor: byGarbageCollector, verb: "delete", resource: key.resource, namespace: key.namespace, name: key.name}
	_ = c.delete(k, req, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(uidOf(obj))}}) // it was just read
}

func (c *Cluster) isGone(ref metav1.OwnerReference) bool {
	_, gone := c.index.gone[ref.UID]
	return gone
}

func (c *Cluster) isThere(ref metav1.OwnerReference) bool {
	_, there := c.index.keys[ref.UID]
	return there
}

// setOwners writes the owner references of one object as the garbage collector.
func (c *Cluster) setOwners(k *kind, key objectKey, refs []metav1.OwnerReference) {
	before, err := c.get(k, key.namespace, key.name)
	if err != nil {
		return
	}
	after := before.DeepCopyObject()
	m, err := meta.Accessor(after)
	if err != nil {
		return
	}
	m.SetOwnerReferences(refs)
	req := request{actor: byGarbageCollector, verb: "patch", resource: key.resource, namespace: key.namespace, name: key.name}
	_, _ = c.replace(k, req, before, after) // nothing can be refused: only owner references differ
}
