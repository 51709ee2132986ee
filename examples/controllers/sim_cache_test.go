// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The simulation has no informers of client-go, whose detector finds objects that were modified in a
// cache. It compares the metadata itself, which every write changes.

// metaOf returns a copy of the metadata of an object that a client may modify, or nil.
func metaOf(o runtime.Object) *metav1.ObjectMeta {
	if m, ok := o.(metav1.ObjectMetaAccessor); ok && o != nil {
		if object, ok := m.GetObjectMeta().(*metav1.ObjectMeta); ok && object != nil {
			return object.DeepCopy()
		}
	}
	return nil
}

// checkUnmodified checks that an object in the cache is the one that was put there.
func (i *informer) checkUnmodified(key string) {
	e := i.cached[key]
	if e == nil || e.meta == nil || e.gone {
		return
	}
	if now := metaOf(e.object); !equality.Semantic.DeepEqual(e.meta, now) {
		i.site.modified = append(i.site.modified, i.String()+" "+key+" at "+e.meta.ResourceVersion)
	}
}

// checkCaches reports objects that a pass has modified in a cache.
func (w *world) checkCaches() {
	for _, s := range []*site{w.control, w.target} {
		for _, name := range s.modified {
			w.violate("the controllers modified %s in a cache", name)
		}
		s.modified = nil
	}
}
