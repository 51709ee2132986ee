// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/machinist-dev/machinist"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
)

// reader is the Reader of all runners: a read is a lookup in an index of a cache. The objects are shared
// with the caches and must not be changed.
type reader struct {
	control, target client.Reader // the caches
	scheme          *runtime.Scheme
}

// addIndexes adds the indexes of the runners to the caches of both clusters.
func addIndexes(ctx context.Context, control, target client.FieldIndexer) (err error) {
	for _, index := range machinerunner.Indexes() {
		in, of := control, index.Of.(client.Object) //nolint:forcetypeassert // all typed objects are
		if index.Target {
			in = target
		}
		err = errors.Join(err, in.IndexField(ctx, of, index.Name, func(o client.Object) []string { return index.Keys(o) }))
	}
	return err
}

// cacheOf returns the cache of the objects of a type.
func (r *reader) cacheOf(o machinist.Object, index string) (client.Reader, error) {
	switch o.(type) {
	case *appsv1.DaemonSet, *corev1.PersistentVolume: // a drain goes on without them
		return nil, fmt.Errorf("%w: %T", machinist.ErrNotCached, o)
	case *corev1.Node, *corev1.Pod, *corev1.PersistentVolumeClaim, *policyv1.PodDisruptionBudget, *storagev1.VolumeAttachment:
		return r.target, nil
	case *corev1.Secret:
		if index != "" { // bootstrap tokens
			return r.target, nil
		}
	}
	return r.control, nil
}

// Get implements [machinist.Reader].
func (r *reader) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	from, err := r.cacheOf(o, "")
	if err != nil {
		return nil, err
	}
	into := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object) //nolint:forcetypeassert // all typed objects are
	if err := from.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetName()}, into, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return into, nil
}

// List implements [machinist.Reader].
func (r *reader) List(ctx context.Context, o machinist.Object, index, key string) (all []machinist.Object, _ error) {
	from, err := r.cacheOf(o, index)
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(o.(client.Object), r.scheme) //nolint:forcetypeassert // all typed objects are
	if err != nil {
		return nil, err
	}
	into, err := r.scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	which := &client.ListOptions{Namespace: o.GetNamespace(), UnsafeDisableDeepCopy: new(true)}
	if index != "" {
		which.FieldSelector = fields.OneTermEqualSelector(index, key)
	}
	if err := from.List(ctx, into.(client.ObjectList), which); err != nil { //nolint:forcetypeassert // all typed lists are
		return nil, err
	}
	err = meta.EachListItem(into, func(o runtime.Object) error {
		all = append(all, o.(machinist.Object)) //nolint:forcetypeassert // all typed objects are
		return nil
	})
	return all, err
}
