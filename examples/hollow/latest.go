// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// latest remembers what was written until a cache shows it, so that nothing is
// done twice. The zero value remembers nothing.
type latest[T metav1.Object] struct {
	written map[types.UID]T
	gone    map[types.UID]bool
}

// wrote remembers an object as the API server returned it.
func (l *latest[T]) wrote(object T) {
	if l.written == nil {
		l.written = map[types.UID]T{}
	}
	l.written[object.GetUID()] = object
}

// removed remembers that an object is gone.
func (l *latest[T]) removed(uid types.UID) {
	if l.gone == nil {
		l.gone = map[types.UID]bool{}
	}
	l.gone[uid] = true
}

// of returns objects of a cache as they are, as far as is known, without those
// that are gone, and forgets what the cache has caught up with.
func (l *latest[T]) of(cached []T) []T {
	if len(l.written) == 0 && len(l.gone) == 0 {
		return cached
	}
	var still latest[T]
	out := make([]T, 0, len(cached))
	for _, o := range cached {
		uid := o.GetUID()
		if l.gone[uid] {
			still.removed(uid)
			continue
		}
		if w, ok := l.written[uid]; ok && older(o, w) {
			still.wrote(w)
			o = w
		}
		out = append(out, o)
	}
	*l = still
	return out
}

// older says whether a is an older version of an object than b. What cannot be
// compared is not.
func older(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
