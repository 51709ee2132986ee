// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// written holds the results of own writes until a cache shows them, so that nothing is
// done twice. The zero value holds nothing.
type written[T metav1.Object] struct {
	objects map[types.UID]T
	deleted map[types.UID]bool
}

// put records the object that a write returned.
func (w *written[T]) put(object T) {
	if w.objects == nil {
		w.objects = map[types.UID]T{}
	}
	w.objects[object.GetUID()] = object
}

// putDeleted records that an object no longer exists.
func (w *written[T]) putDeleted(uid types.UID) {
	if w.deleted == nil {
		w.deleted = map[types.UID]bool{}
	}
	w.deleted[uid] = true
}

// newest returns the newest known versions of the objects of a cache, without the deleted
// ones. It forgets the writes that the cache shows.
func (w *written[T]) newest(cached []T) []T {
	if len(w.objects) == 0 && len(w.deleted) == 0 {
		return cached
	}
	var pending written[T]
	out := make([]T, 0, len(cached))
	for _, o := range cached {
		uid := o.GetUID()
		if w.deleted[uid] {
			pending.putDeleted(uid)
			continue
		}
		if own, ok := w.objects[uid]; ok && older(o, own) {
			pending.put(own)
			o = own
		}
		out = append(out, o)
	}
	*w = pending
	return out
}

// older reports whether a is an older version of an object than b. It is false for
// versions that cannot be compared.
func older(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
