// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// The required lists.
const (
	sourceNodes drain.Source = "nodes"
	sourcePods  drain.Source = "pods"
)

// Informers is the Reader of shared informers. An index finds the pods of a Node at the same cost
// in clusters of any size. Its objects are shared with the informers and must not be changed. It is
// safe for concurrent use.
type Informers struct {
	by     map[drain.Source]watched
	cached objects.Informers
}

// watched has the informer of the objects of a list.
type watched struct {
	of       machinist.Object
	informer cache.SharedIndexInformer
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
	i := &Informers{}
	for _, source := range append([]drain.Source{sourceNodes, sourcePods}, watch...) {
		list := informerOf(factory(source), source)
		if list.informer == nil {
			return nil, missing("source " + string(source))
		}
		if err := i.add(source, list); err != nil {
			return nil, observeError(source, err)
		}
	}
	return i, nil
}

// add adds a list, and its missing indexes. Several drains may share an informer.
func (i *Informers) add(source drain.Source, list watched) error {
	if i.by == nil {
		i.by = map[drain.Source]watched{}
	}
	i.by[source] = list
	return i.cached.Target(list.of, list.informer, nil, Indexes())
}

// informerOf returns the informer of a list, and none if there is no such list.
func informerOf(factory informers.SharedInformerFactory, source drain.Source) watched {
	switch source {
	case sourceNodes:
		return watched{&corev1.Node{}, factory.Core().V1().Nodes().Informer()}
	case sourcePods:
		return watched{&corev1.Pod{}, factory.Core().V1().Pods().Informer()}
	case drain.SourceBudgets:
		return watched{&policyv1.PodDisruptionBudget{}, factory.Policy().V1().PodDisruptionBudgets().Informer()}
	case drain.SourceDaemonSets:
		return watched{&appsv1.DaemonSet{}, factory.Apps().V1().DaemonSets().Informer()}
	case drain.SourceAttachments:
		return watched{&storagev1.VolumeAttachment{}, factory.Storage().V1().VolumeAttachments().Informer()}
	case drain.SourceClaims:
		return watched{&corev1.PersistentVolumeClaim{}, factory.Core().V1().PersistentVolumeClaims().Informer()}
	case drain.SourceVolumes:
		return watched{&corev1.PersistentVolume{}, factory.Core().V1().PersistentVolumes().Informer()}
	default:
		return watched{}
	}
}

// HasSynced reports whether all informers have their first list. Before that, [Observe] returns an
// error.
func (i *Informers) HasSynced() bool {
	if i == nil {
		return false
	}
	for _, list := range i.by {
		if !list.informer.HasSynced() {
			return false
		}
	}
	return true
}

// Get implements [machinist.Reader]. Before the first list of the type it returns an error.
func (i *Informers) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	if i == nil {
		return nil, machinist.ErrNotCached
	}
	return i.cached.Get(ctx, o)
}

// List implements [machinist.Reader]. Before the first list of the type it returns an error.
func (i *Informers) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if i == nil {
		return nil, machinist.ErrNotCached
	}
	return i.cached.List(ctx, o, index, key)
}
