// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Listed returns expectations for everything that a live list shows and a cache does not show yet:
// objects that are missing, objects of older versions, and objects that no longer exist. live and
// cached are all objects of one owner; nil objects are skipped. After that, the cache is as new as the list once the
// expectations are observed.
//
// The first list of a new process may be older than the last writes of the process before it. So a
// controller makes one live list before its first creation or deletion for an owner.
func Listed[T metav1.Object](e Expectations, live, cached []T, at time.Time) Expectations {
	shown := make(map[string]T, len(cached))
	for _, o := range cached {
		if !isNil(o) {
			shown[o.GetName()] = o
		}
	}
	for _, o := range live {
		if isNil(o) {
			continue
		}
		c, found := shown[o.GetName()]
		switch {
		case !found || c.GetUID() != o.GetUID():
			e = e.Created(o, at)
		case o.GetDeletionTimestamp() != nil && c.GetDeletionTimestamp() == nil:
			e = e.Deleting(kindOf(o), o.GetName(), o.GetUID(), at)
		case older(c, o):
			e = e.Updated(o, at)
		}
		delete(shown, o.GetName())
	}
	for _, o := range shown { // the order has no effect
		e = e.Deleting(kindOf(o), o.GetName(), o.GetUID(), at)
	}
	return e
}

// older reports whether a has an older version than b. Versions that cannot be compared are not.
func older(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
