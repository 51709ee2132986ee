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

// objectKey names one object of the store.
type objectKey struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
}

func (k objectKey) String() string {
	return k.resource.String() + "/" + k.namespace + "/" + k.name
}

// index is what the stand-ins for controllers look things up in: their informer caches, so to speak. Its objects are
// never modified.
type index struct {
	keys       map[types.UID]objectKey
	dependents map[types.UID]map[objectKey]struct{}
	gone       map[types.UID]struct{}
	pods       map[string]map[string]*corev1.Pod
	budgets    map[string]map[string]*policyv1.PodDisruptionBudget
	// dying are the pods on their way out, and when they were asked to go; zero if they came like that.
	dying map[objectKey]time.Time
	// nodes are the pods of each node.
	nodes map[string]map[objectKey]struct{}
}

func newIndex() index {
	return index{
		keys:       map[types.UID]objectKey{},
		dependents: map[types.UID]map[objectKey]struct{}{},
		gone:       map[types.UID]struct{}{},
		pods:       map[string]map[string]*corev1.Pod{},
		budgets:    map[string]map[string]*policyv1.PodDisruptionBudget{},
		dying:      map[objectKey]time.Time{},
		nodes:      map[string]map[objectKey]struct{}{},
	}
}

// commit stores one accepted change, numbers it, tells the watches and lets the stand-ins for controllers react.
// A nil before is a creation, a nil after a removal. It takes ownership of both objects. The caller holds c.mu.
func (c *Cluster) commit(k *kind, req request, before, after runtime.Object) error {
	c.version++
	version := formatVersion(c.version)
	named := after
	if after == nil {
		named = before
	}
	m, err := meta.Accessor(named)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if after != nil {
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

// keep puts the change into client-go's tracker.
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

// controllers runs the stand-ins that react to a change.
func (c *Cluster) controllers(k *kind, key objectKey, before, after runtime.Object) {
	c.volumesAfter(key, before, after) // before the claims of the pod go with it
	if after == nil {
		c.collectDependentsOf(uidOf(before))
	}
	c.budgetsAfter(k, key, before, after)
}

// note keeps the index in step with the store.
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

// notePod keeps what is known of pods in step with the store.
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
		delete(x.dying, key)
	case before == nil || before.UID != after.UID:
		x.dying[key] = time.Time{}
	case before.DeletionTimestamp == nil:
		x.dying[key] = now
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

// ordered returns keys in a fixed order, so that the same run gives the same history.
func ordered[T any](keys map[objectKey]T) []objectKey {
	return slices.SortedFunc(maps.Keys(keys), func(a, b objectKey) int {
		return cmp.Compare(a.String(), b.String())
	})
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

// parseVersion reads a resource version; empty means zero.
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
