// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectKey identifies an object of the store.
type objectKey struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
}

func (k objectKey) String() string {
	return k.resource.String() + "/" + k.namespace + "/" + k.name
}

// index has the lookups of the simulated controllers. Its objects are never modified.
type index struct {
	keys       map[types.UID]objectKey
	dependents map[types.UID]map[objectKey]struct{}
	gone       map[types.UID]struct{}
	pods       map[string]map[string]*corev1.Pod
	budgets    map[string]map[string]*policyv1.PodDisruptionBudget
	// terminating has the terminating pods and when they were deleted. Zero means that they were added as terminating.
	terminating map[objectKey]time.Time
	// nodes are the pods of each node.
	nodes map[string]map[objectKey]struct{}
}

func newIndex() index {
	return index{
		keys:        map[types.UID]objectKey{},
		dependents:  map[types.UID]map[objectKey]struct{}{},
		gone:        map[types.UID]struct{}{},
		pods:        map[string]map[string]*corev1.Pod{},
		budgets:     map[string]map[string]*policyv1.PodDisruptionBudget{},
		terminating: map[objectKey]time.Time{},
		nodes:       map[string]map[objectKey]struct{}{},
	}
}

// commit stores one accepted change with the next resource version, sends it to the watches and runs the simulated
// controllers. A nil before is a creation, a nil after a removal. The objects must not be changed afterwards. The caller
// holds c.mu.
func (c *Cluster) commit(k *kind, req request, before, after runtime.Object) error {
	c.version++
	version := formatVersion(c.version)
	m := metaOf(before)
	if after != nil {
		m = metaOf(after)
		m.SetResourceVersion(version)
	}
	key := objectKey{resource: k.gvr, namespace: m.GetNamespace(), name: m.GetName()}
	if err := c.keep(key, before, after); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("store %v: %w", key, err))
	}
	c.history = append(c.history, Write{
		Time: c.clock.Now(), Actor: req.actor, Verb: req.verb, Resource: req.resource, Subresource: req.subresource,
		Namespace: key.namespace, Name: key.name, UID: m.GetUID(), ResourceVersion: version, Before: before, After: after,
	})
	c.index.note(key, before, after, c.clock.Now())
	c.publish(event{version: c.version, kind: k, before: before, after: after})
	c.wake()
	c.controllers(k, key, before, after)
	return nil
}

// keep writes the change to client-go's tracker.
func (c *Cluster) keep(key objectKey, before, after runtime.Object) error {
	switch {
	case before == nil:
		return c.tracker.Create(key.resource, after, key.namespace)
	case after == nil:
		return c.tracker.Delete(key.resource, key.namespace, key.name)
	default:
		return c.tracker.Update(key.resource, after, key.namespace)
	}
}

// controllers runs the simulated controllers after a change.
func (c *Cluster) controllers(k *kind, key objectKey, before, after runtime.Object) {
	c.volumesAfter(key, before, after) // before the claims of the pod are deleted
	if after == nil {
		c.collectDependentsOf(uidOf(before))
	}
	c.budgetsAfter(k, key, before, after)
}

// note updates the index after a change.
func (x *index) note(key objectKey, before, after runtime.Object, now time.Time) {
	for _, ref := range ownersOf(before) {
		if deps := x.dependents[ref.UID]; deps != nil {
			delete(deps, key)
			if len(deps) == 0 {
				delete(x.dependents, ref.UID)
			}
		}
	}
	for _, ref := range ownersOf(after) {
		if x.dependents[ref.UID] == nil {
			x.dependents[ref.UID] = map[objectKey]struct{}{}
		}
		x.dependents[ref.UID][key] = struct{}{}
	}
	if before != nil && uidOf(before) != uidOf(after) {
		delete(x.keys, uidOf(before))
		x.gone[uidOf(before)] = struct{}{}
	}
	if after != nil {
		x.keys[uidOf(after)] = key
		delete(x.gone, uidOf(after))
	}
	switch key.resource {
	case podsResource:
		place(x.pods, key, after)
		x.notePod(key, orNil[corev1.Pod](before), orNil[corev1.Pod](after), now)
	case budgetsResource:
		place(x.budgets, key, after)
	}
}

// notePod updates the index of pods after a change.
func (x *index) notePod(key objectKey, before, after *corev1.Pod, now time.Time) {
	if before != nil {
		delete(x.nodes[before.Spec.NodeName], key)
		if len(x.nodes[before.Spec.NodeName]) == 0 {
			delete(x.nodes, before.Spec.NodeName)
		}
	}
	if after != nil {
		if x.nodes[after.Spec.NodeName] == nil {
			x.nodes[after.Spec.NodeName] = map[objectKey]struct{}{}
		}
		x.nodes[after.Spec.NodeName][key] = struct{}{}
	}
	switch {
	case after == nil || after.DeletionTimestamp == nil:
		delete(x.terminating, key)
	case before == nil || before.UID != after.UID:
		x.terminating[key] = time.Time{}
	case before.DeletionTimestamp == nil:
		x.terminating[key] = now
	}
}

// place sets or removes one object in a two-level map.
func place[T runtime.Object](byNamespace map[string]map[string]T, key objectKey, obj runtime.Object) {
	typed, ok := obj.(T)
	if !ok {
		delete(byNamespace[key.namespace], key.name)
		return
	}
	if byNamespace[key.namespace] == nil {
		byNamespace[key.namespace] = map[string]T{}
	}
	byNamespace[key.namespace][key.name] = typed
}

// inOrder returns the objects of a map by name.
func inOrder[T any](byName map[string]T) []T {
	sorted := make([]T, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sorted = append(sorted, byName[name])
	}
	return sorted
}

// ordered returns keys in order, so that the same run has the same history.
func ordered[T any](keys map[objectKey]T) []objectKey {
	return slices.SortedFunc(maps.Keys(keys), func(a, b objectKey) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// metaOf returns the metadata of an object that is stored, or was decoded from a request.
func metaOf(obj runtime.Object) metav1.Object {
	m, _ := meta.Accessor(obj)
	return m
}

// stored returns a copy of a stored object, or nil.
func stored[T any](c *Cluster, resource schema.GroupVersionResource, namespace, name string) *T {
	obj, err := c.tracker.Get(resource, namespace, name)
	if err != nil {
		return nil
	}
	return orNil[T](obj)
}

// allOf returns copies of the stored objects of a resource and namespace, by name. An empty namespace means all.
func allOf[T runtime.Object](c *Cluster, resource schema.GroupVersionResource, namespace string) []T {
	var found []T
	if list, err := c.tracker.List(resource, c.kinds[resource].gvk, namespace); err == nil {
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			found = append(found, obj.(T))
			return nil
		})
	}
	return found
}

func ownersOf(obj runtime.Object) []metav1.OwnerReference {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetOwnerReferences()
	}
	return nil
}

func uidOf(obj runtime.Object) types.UID {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetUID()
	}
	return ""
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// parseVersion parses a resource version. Empty is zero.
func parseVersion(version string) (uint64, error) {
	if version == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid resource version %q", version)
	}
	return n, nil
}
