// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain"
)

// The names of the indexes.
const (
	byNode   = "drain.machinist.dev/node"
	byVolume = "drain.machinist.dev/volume"
)

// The required lists.
const (
	sourceNodes drain.Source = "nodes"
	sourcePods  drain.Source = "pods"
)

// Informers is the [Reader] of shared informers. An index finds the pods of a Node at the same cost
// in clusters of any size. Its objects are shared with the informers and must not be changed. It is
// safe for concurrent use.
type Informers struct {
	by map[drain.Source]cache.SharedIndexInformer
}

// NewInformers returns the informers of a factory for Nodes, pods and the lists in watch, and adds
// the indexes of a drain. The caller starts the factory, and may share it. Its client needs the
// right to list and watch these resources. Other lists are not evaluated. The error is
// about a nil factory or an unknown list. Otherwise an informer was stopped.
func NewInformers(factory informers.SharedInformerFactory, watch ...drain.Source) (*Informers, error) {
	if factory == nil {
		return nil, missing("factory of informers")
	}
	return newInformers(func(drain.Source) informers.SharedInformerFactory { return factory }, watch)
}

// newInformers is [NewInformers] with a factory for each list.
func newInformers(factory func(drain.Source) informers.SharedInformerFactory, watch []drain.Source) (*Informers, error) {
	i := &Informers{by: make(map[drain.Source]cache.SharedIndexInformer, 2+len(watch))}
	for _, source := range append([]drain.Source{sourceNodes, sourcePods}, watch...) {
		informer := informerOf(factory(source), source)
		if informer == nil {
			return nil, missing("source " + string(source))
		}
		if err := addIndexes(informer, source); err != nil {
			return nil, observeError(source, err)
		}
		i.by[source] = informer
	}
	return i, nil
}

// informerOf returns the informer of a list, or nil if there is no such list.
func informerOf(factory informers.SharedInformerFactory, source drain.Source) cache.SharedIndexInformer {
	switch source {
	case sourceNodes:
		return factory.Core().V1().Nodes().Informer()
	case sourcePods:
		return factory.Core().V1().Pods().Informer()
	case drain.SourceBudgets:
		return factory.Policy().V1().PodDisruptionBudgets().Informer()
	case drain.SourceDaemonSets:
		return factory.Apps().V1().DaemonSets().Informer()
	case drain.SourceAttachments:
		return factory.Storage().V1().VolumeAttachments().Informer()
	case drain.SourceClaims:
		return factory.Core().V1().PersistentVolumeClaims().Informer()
	case drain.SourceVolumes:
		return factory.Core().V1().PersistentVolumes().Informer()
	default:
		return nil
	}
}

// addIndexes adds the missing indexes. Several drains may share an informer.
func addIndexes(informer cache.SharedIndexInformer, source drain.Source) error {
	var wanted cache.Indexers
	switch source { //nolint:exhaustive // other lists are read by name
	case sourcePods:
		wanted = cache.Indexers{byNode: indexBy(nodeOfPod), cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	case drain.SourceBudgets, drain.SourceDaemonSets:
		wanted = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	case drain.SourceAttachments:
		wanted = cache.Indexers{byNode: indexBy(nodeOfAttachment), byVolume: indexBy(volumeOfAttachment)}
	}
	for name := range informer.GetIndexer().GetIndexers() {
		delete(wanted, name)
	}
	if len(wanted) == 0 {
		return nil
	}
	return informer.AddIndexers(wanted)
}

// indexBy returns an index by a name in each object. Objects without the name are not in it.
func indexBy[T any](name func(obj T) string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if typed, ok := obj.(T); ok && name(typed) != "" {
			return []string{name(typed)}, nil
		}
		return nil, nil
	}
}

func nodeOfPod(pod *corev1.Pod) string { return pod.Spec.NodeName }

func nodeOfAttachment(attachment *storagev1.VolumeAttachment) string { return attachment.Spec.NodeName }

// volumeOfAttachment returns the name of the PersistentVolume of an attachment, or "".
func volumeOfAttachment(attachment *storagev1.VolumeAttachment) string {
	if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

// HasSynced reports whether all informers have their first list. Before that, [Observe] returns an
// error.
func (i *Informers) HasSynced() bool {
	if i == nil {
		return false
	}
	for _, informer := range i.by {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// store returns the cache of a list.
func (i *Informers) store(source drain.Source) (cache.Indexer, error) {
	if i == nil || i.by[source] == nil {
		return nil, errNotWatched
	}
	if !i.by[source].HasSynced() {
		return nil, errNotSynced
	}
	return i.by[source].GetIndexer(), nil
}

// Node returns a Node from the cache, or nil if it does not exist.
func (i *Informers) Node(_ context.Context, name string) (*corev1.Node, error) {
	nodes, err := byKeys[*corev1.Node](i, sourceNodes, []string{name})
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	return nodes[0], nil
}

// PodsOn returns the pods of a Node from the cache.
func (i *Informers) PodsOn(_ context.Context, node string) ([]*corev1.Pod, error) {
	return byIndex[*corev1.Pod](i, sourcePods, byNode, node)
}

// BudgetsIn returns the PodDisruptionBudgets of namespaces from the cache.
func (i *Informers) BudgetsIn(_ context.Context, namespaces []string) ([]*policyv1.PodDisruptionBudget, error) {
	return byIndex[*policyv1.PodDisruptionBudget](i, drain.SourceBudgets, cache.NamespaceIndex, namespaces...)
}

// DaemonSetsIn returns the DaemonSets of namespaces from the cache.
func (i *Informers) DaemonSetsIn(_ context.Context, namespaces []string) ([]*appsv1.DaemonSet, error) {
	return byIndex[*appsv1.DaemonSet](i, drain.SourceDaemonSets, cache.NamespaceIndex, namespaces...)
}

// AttachmentsOf returns the VolumeAttachments of a Node and of volumes from the cache.
func (i *Informers) AttachmentsOf(_ context.Context, node string, volumes []string) ([]*storagev1.VolumeAttachment, error) {
	here, err := byIndex[*storagev1.VolumeAttachment](i, drain.SourceAttachments, byNode, node)
	if err != nil {
		return nil, err
	}
	all, err := byIndex[*storagev1.VolumeAttachment](i, drain.SourceAttachments, byVolume, volumes...)
	if err != nil {
		return nil, err
	}
	elsewhere := slices.DeleteFunc(all, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
	return append(here, elsewhere...), nil
}

// ClaimsOf returns PersistentVolumeClaims from the cache.
func (i *Informers) ClaimsOf(_ context.Context, claims []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error) {
	keys := make([]string, len(claims))
	for n, claim := range claims {
		keys[n] = claim.Namespace + "/" + claim.Name
	}
	return byKeys[*corev1.PersistentVolumeClaim](i, drain.SourceClaims, keys)
}

// VolumesOf returns PersistentVolumes from the cache.
func (i *Informers) VolumesOf(_ context.Context, names []string) ([]*corev1.PersistentVolume, error) {
	return byKeys[*corev1.PersistentVolume](i, drain.SourceVolumes, names)
}

// byKeys returns the objects with these keys from a cache.
func byKeys[T any](i *Informers, source drain.Source, keys []string) ([]T, error) {
	store, err := i.store(source)
	if err != nil {
		return nil, err
	}
	found := make([]T, 0, len(keys))
	for _, key := range keys {
		obj, exists, err := store.GetByKey(key)
		if err != nil {
			return nil, err
		}
		if typed, ok := obj.(T); ok && exists {
			found = append(found, typed)
		}
	}
	return found, nil
}

// byIndex returns the objects with these values of an index from a cache.
func byIndex[T any](i *Informers, source drain.Source, index string, values ...string) ([]T, error) {
	store, err := i.store(source)
	if err != nil {
		return nil, err
	}
	var found []T
	for _, value := range values {
		objs, err := store.ByIndex(index, value)
		if err != nil {
			return nil, err
		}
		found = slices.Grow(found, len(objs))
		for _, obj := range objs {
			if typed, ok := obj.(T); ok {
				found = append(found, typed)
			}
		}
	}
	return found, nil
}
