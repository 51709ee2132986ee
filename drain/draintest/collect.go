// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// collectDependentsOf deletes the dependents of a deleted owner. A dependent with another owner loses only the reference.
func (c *Cluster) collectDependentsOf(owner types.UID) {
	for _, key := range ordered(c.index.dependents[owner]) {
		c.collect(key)
	}
}

// collectDangling deletes objects that were created after their owner was deleted. References to owners that this cluster
// never had are ignored: a test may have pods without their replica set.
func (c *Cluster) collectDangling() {
	for _, owner := range slices.Sorted(maps.Keys(c.index.dependents)) {
		if _, gone := c.index.gone[owner]; gone {
			c.collectDependentsOf(owner)
		}
	}
}

// collect deletes one dependent of a deleted owner, or removes its reference.
func (c *Cluster) collect(key objectKey) {
	k := c.kinds[key.resource]
	if k == nil {
		return
	}
	obj, err := c.get(k, key.namespace, key.name)
	if err != nil {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(ownersOf(obj)), func(ref metav1.OwnerReference) bool {
		_, gone := c.index.gone[ref.UID]
		return gone
	})
	if slices.ContainsFunc(kept, func(ref metav1.OwnerReference) bool { _, exists := c.index.keys[ref.UID]; return exists }) {
		after := obj.DeepCopyObject()
		metaOf(after).SetOwnerReferences(kept)
		req := request{actor: byGarbageCollector, verb: "patch", resource: key.resource, namespace: key.namespace, name: key.name}
		_, _ = c.replace(k, req, obj, after) // it was just read
		return
	}
	if metaOf(obj).GetDeletionTimestamp() != nil {
		return
	}
	req := request{actor: byGarbageCollector, verb: "delete", resource: key.resource, namespace: key.namespace, name: key.name}
	_ = c.delete(k, req, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(uidOf(obj))}}) // it was just read
}
