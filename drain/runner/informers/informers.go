// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/caches"
)

// Informers is the Reader of shared informers. An index finds the pods of a Node at the same cost
// in clusters of any size. Its objects are shared with the informers and must not be changed. It is
// safe for concurrent use.
type Informers struct{ cached caches.Informers }

// New returns the informers of a factory for Nodes, pods and the lists in watch, and adds the indexes of a
// drain. The caller starts the factory, and may share it. Its client needs the right to list and watch
// these resources. Other lists are not evaluated. The error is about a nil factory or an unknown list.
// Otherwise an informer was stopped.
func New(factory informers.SharedInformerFactory, watch ...drain.Source) (*Informers, error) {
	if factory == nil {
		return nil, errors.New("drain: unusable: no factory of informers")
	}
	i := &Informers{}
	add := func(o machinist.Object, informer cache.SharedIndexInformer) error {
		return i.cached.Target(o, informer, nil, runner.Indexes())
	}
	err := errors.Join(add(&corev1.Node{}, factory.Core().V1().Nodes().Informer()), add(&corev1.Pod{}, factory.Core().V1().Pods().Informer()))
	for _, source := range watch {
		switch source {
		case drain.SourceBudgets:
			err = errors.Join(err, add(&policyv1.PodDisruptionBudget{}, factory.Policy().V1().PodDisruptionBudgets().Informer()))
		case drain.SourceDaemonSets:
			err = errors.Join(err, add(&appsv1.DaemonSet{}, factory.Apps().V1().DaemonSets().Informer()))
		case drain.SourceAttachments:
			err = errors.Join(err, add(&storagev1.VolumeAttachment{}, factory.Storage().V1().VolumeAttachments().Informer()))
		case drain.SourceClaims:
			err = errors.Join(err, add(&corev1.PersistentVolumeClaim{}, factory.Core().V1().PersistentVolumeClaims().Informer()))
		case drain.SourceVolumes:
			err = errors.Join(err, add(&corev1.PersistentVolume{}, factory.Core().V1().PersistentVolumes().Informer()))
		default:
			err = errors.Join(err, fmt.Errorf("drain: unusable: no source %s", source))
		}
	}
	if err != nil {
		return nil, err
	}
	return i, nil
}

// HasSynced reports whether all informers have their first list. Before that, [runner.Observe] returns an
// error.
func (i *Informers) HasSynced() bool {
	if i == nil {
		return false
	}
	for _, informer := range i.cached.All {
		if !informer.HasSynced() {
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

// OnChange calls a function with the name of each Node whose drain may continue after an event: see
// [runner.Affected].
//
// It is first called once for each existing Node. It may be called for Nodes without a drain, several
// times, and concurrently. The informers wait for it: add the name to a queue. The error means that
// an informer was stopped.
func (i *Informers) OnChange(changed func(node string)) error {
	if i == nil || changed == nil {
		return nil
	}
	var errs []error
	for n, informer := range i.cached.All {
		_, err := informer.AddEventHandler(i.onEvent(n == 0, changed)) // the first one has the Nodes
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// onEvent returns a handler that calls changed with the Nodes of an event. initial means that it also calls
// it for the first list.
func (i *Informers) onEvent(initial bool, changed func(node string)) cache.ResourceEventHandler {
	affected := func(before, after any) {
		b, _ := before.(metav1.Object)
		a, _ := after.(metav1.Object)
		for _, node := range runner.Affected(context.Background(), i, b, a) {
			changed(node)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if initial || !isInInitialList {
				affected(nil, obj)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok1 := oldObj.(metav1.Object)
			after, ok2 := newObj.(metav1.Object)
			if ok1 && ok2 && before.GetResourceVersion() != after.GetResourceVersion() {
				affected(before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			affected(obj, nil)
		},
	}
}
