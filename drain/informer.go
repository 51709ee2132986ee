// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// ErrNotSynced is the error of informers that have not yet seen everything once.
var ErrNotSynced = errors.New("drain: the informer has not synced")

// The indexes that informers get. Pods have one by namespace already.
const (
	byNode   = "drain.machinist.dev/node"
	byVolume = "drain.machinist.dev/volume"
)

// Informers are sources that read from shared informers: of a Node they find the pods
// by an index, whatever the size of the cluster. What they return is shared with the
// informers and must not be changed. They may be used by several goroutines.
type Informers struct {
	by       map[Source]cache.SharedIndexInformer
	detached detachedVolumes
}

// NewInformers takes the informers of Nodes and pods from a factory, and those of the
// sources that are named, and adds the indexes that a drain needs. Whoever made the factory starts it,
// and may share it; its client must be allowed to list and watch what is named. Sources that
// are not named are not evaluated. An error says that the factory is missing, that there is
// no such source, or that an informer has been stopped.
func NewInformers(factory informers.SharedInformerFactory, watch ...Source) (*Informers, error) {
	if factory == nil {
		return nil, errors.New("drain: no factory of informers")
	}
	return newInformers(func(Source) informers.SharedInformerFactory { return factory }, watch)
}

// newInformers takes each informer from a factory of its own choice.
func newInformers(factory func(Source) informers.SharedInformerFactory, watch []Source) (*Informers, error) {
	i := &Informers{by: make(map[Source]cache.SharedIndexInformer, 2+len(watch))}
	for _, source := range append([]Source{SourceNodes, SourcePods}, watch...) {
		informer := informerOf(factory(source), source)
		if informer == nil {
			return nil, &SourceError{Source: source, Err: ErrNoSource}
		}
		if err := addIndexes(informer, source); err != nil {
			return nil, &SourceError{Source: source, Err: err}
		}
		i.by[source] = informer
	}
	return i, nil
}

// informerOf returns the informer of a source, or nil if there is no such source.
func informerOf(factory informers.SharedInformerFactory, source Source) cache.SharedIndexInformer {
	switch source {
	case SourceNodes:
		return factory.Core().V1().Nodes().Informer()
	case SourcePods:
		return factory.Core().V1().Pods().Informer()
	case SourceBudgets:
		return factory.Policy().V1().PodDisruptionBudgets().Informer()
	case SourceNamespaces:
		return factory.Core().V1().Namespaces().Informer()
	case SourceDaemonSets:
		return factory.Apps().V1().DaemonSets().Informer()
	case SourceAttachments:
		return factory.Storage().V1().VolumeAttachments().Informer()
	case SourceClaims:
		return factory.Core().V1().PersistentVolumeClaims().Informer()
	case SourceVolumes:
		return factory.Core().V1().PersistentVolumes().Informer()
	default:
		return nil
	}
}

// addIndexes adds the indexes that are not there yet: several drains may share an informer.
func addIndexes(informer cache.SharedIndexInformer, source Source) error {
	var wanted cache.Indexers
	switch source { //nolint:exhaustive // the others are found by their name
	case SourcePods:
		wanted = cache.Indexers{byNode: nodeOfPod, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	case SourceBudgets, SourceDaemonSets:
		wanted = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	case SourceAttachments:
		wanted = cache.Indexers{byNode: nodeOfAttachment, byVolume: volumeOfAttachment}
	}
	for name := range informer.GetIndexer().GetIndexers() {
		delete(wanted, name)
	}
	if len(wanted) == 0 {
		return nil
	}
	return informer.AddIndexers(wanted)
}

func nodeOfPod(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

func nodeOfAttachment(obj any) ([]string, error) {
	if attachment, ok := obj.(*storagev1.VolumeAttachment); ok {
		return []string{attachment.Spec.NodeName}, nil
	}
	return nil, nil
}

func volumeOfAttachment(obj any) ([]string, error) {
	if attachment, ok := obj.(*storagev1.VolumeAttachment); ok {
		return []string{attachedVolumeName(attachment)}, nil
	}
	return nil, nil
}

// HasSynced says whether all informers have seen everything once. Until then a Node
// cannot be observed.
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

// Sources returns the informers as sources. Of nil Informers nothing can be observed.
func (i *Informers) Sources() Sources {
	if i == nil {
		return Sources{}
	}
	var watched []Source
	for source := range i.by {
		watched = append(watched, source)
	}
	return sourcesOf(watched, i)
}

// store returns what the informer of a source has seen.
func (i *Informers) store(source Source) (cache.Indexer, error) {
	if i == nil || i.by[source] == nil {
		return nil, ErrNoSource
	}
	if !i.by[source].HasSynced() {
		return nil, ErrNotSynced
	}
	return i.by[source].GetIndexer(), nil
}

// Node returns a Node as it was last seen.
func (i *Informers) Node(_ context.Context, name string) (*corev1.Node, error) {
	nodes, err := byKeys[*corev1.Node](i, SourceNodes, []string{name})
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	return nodes[0], nil
}

// PodsOn returns the pods of a Node as they were last seen.
func (i *Informers) PodsOn(_ context.Context, node string) ([]*corev1.Pod, error) {
	return byIndex[*corev1.Pod](i, SourcePods, byNode, node)
}

// BudgetsIn returns the budgets of namespaces as they were last seen.
func (i *Informers) BudgetsIn(_ context.Context, namespaces []string) ([]*policyv1.PodDisruptionBudget, error) {
	return byIndex[*policyv1.PodDisruptionBudget](i, SourceBudgets, cache.NamespaceIndex, namespaces...)
}

// NamespacesOf returns namespaces as they were last seen.
func (i *Informers) NamespacesOf(_ context.Context, names []string) ([]*corev1.Namespace, error) {
	return byKeys[*corev1.Namespace](i, SourceNamespaces, names)
}

// DaemonSetsIn returns the DaemonSets of namespaces as they were last seen.
func (i *Informers) DaemonSetsIn(_ context.Context, namespaces []string) ([]*appsv1.DaemonSet, error) {
	return byIndex[*appsv1.DaemonSet](i, SourceDaemonSets, cache.NamespaceIndex, namespaces...)
}

// AttachmentsOf returns attachments as they were last seen.
func (i *Informers) AttachmentsOf(_ context.Context, node string, volumes []string) ([]*storagev1.VolumeAttachment, error) {
	here, err := byIndex[*storagev1.VolumeAttachment](i, SourceAttachments, byNode, node)
	if err != nil {
		return nil, err
	}
	all, err := byIndex[*storagev1.VolumeAttachment](i, SourceAttachments, byVolume, volumes...)
	if err != nil {
		return nil, err
	}
	elsewhere := slices.DeleteFunc(all, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
	return append(here, elsewhere...), nil
}

// ClaimsOf returns claims as they were last seen.
func (i *Informers) ClaimsOf(_ context.Context, claims []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error) {
	keys := make([]string, len(claims))
	for n, claim := range claims {
		keys[n] = claim.Namespace + "/" + claim.Name
	}
	return byKeys[*corev1.PersistentVolumeClaim](i, SourceClaims, keys)
}

// VolumesOf returns persistent volumes as they were last seen.
func (i *Informers) VolumesOf(_ context.Context, names []string) ([]*corev1.PersistentVolume, error) {
	return byKeys[*corev1.PersistentVolume](i, SourceVolumes, names)
}

// byKeys looks objects up by their keys.
func byKeys[T any](i *Informers, source Source, keys []string) ([]T, error) {
	store, err := i.store(source)
	if err != nil {
		return nil, err
	}
	found := make([]T, 0, len(keys))
	for _, key := range keys {
		obj, there, err := store.GetByKey(key)
		if err != nil {
			return nil, err
		}
		if typed, ok := obj.(T); ok && there {
			found = append(found, typed)
		}
	}
	return found, nil
}

// byIndex looks objects up by values of an index.
func byIndex[T any](i *Informers, source Source, index string, values ...string) ([]T, error) {
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
