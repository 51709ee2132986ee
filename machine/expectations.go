// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/machinist-dev/machinist/internal/facts"
)

// Expectations are writes of one process that its cache may not show yet. Decisions count them or
// wait for them, so that a stale cache causes no second creation or deletion. Methods return a
// changed copy. Expectations can be stored as JSON. After a restart [Listed] takes their place. The
// zero Expectations are empty.
//
// Record a creation and a deletion before the call, because a call without a response may have an
// effect. Record the result of a write after the call. An expectation does not expire. It ends when
// the cache shows the effect ([Expectations.Observe]), when the API server refused the call
// ([Expectations.Failed]), or when a live read shows that there is no effect
// ([Expectations.Looked]).
type Expectations []expectation

// expectation is one write that the cache has to show. There is at most one for a kind and name: a
// later record replaces an earlier one.
type expectation struct {
	// Kind is the kind of the object, for example [v1alpha1.MachineKind] or "Node".
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Call is "create", "delete" or "update".
	Call string `json:"call"`
	// UID is the UID of the object. It is empty for a creation without a response.
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion is the one that the cache has to show, or a later one. It is empty for a call
	// without a response.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Owner is the UID of the controller of the object, as the API server returned it.
	Owner types.UID `json:"owner,omitempty"`
	// At is when the call was made, or the object last read live.
	At time.Time `json:"at"`
}

const callCreate, callDelete, callUpdate = "create", "delete", "update"

// Creating records that an object is about to be created.
func (e Expectations) Creating(kind, name string, at time.Time) Expectations {
	return e.put(expectation{Kind: kind, Name: name, Call: callCreate, At: at})
}

// Deleting records that the object with this UID is about to be deleted.
func (e Expectations) Deleting(kind, name string, uid types.UID, at time.Time) Expectations {
	return e.put(expectation{Kind: kind, Name: name, Call: callDelete, UID: uid, At: at})
}

// Created records the object that the API server returned for a create. A nil object is ignored.
func (e Expectations) Created(object metav1.Object, at time.Time) Expectations {
	return e.answered(callCreate, object, at)
}

// Updated records the object that the API server returned for an update or a patch. A nil object is
// ignored.
func (e Expectations) Updated(object metav1.Object, at time.Time) Expectations {
	return e.answered(callUpdate, object, at)
}

func (e Expectations) answered(call string, object metav1.Object, at time.Time) Expectations {
	if facts.IsNil(object) {
		return slices.Clone(e)
	}
	return e.put(expectation{
		Kind: facts.KindOf(object), Name: object.GetName(), Call: call, UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Owner: facts.ControllerOf(object), At: at,
	})
}

// Failed records that a create or delete call returned an error. It keeps the expectation if the
// call may have had an effect. look reports that a live read shows this at once: pass its result to
// [Expectations.Looked].
//
// After a failed creation the object may exist, whatever the error. client-go repeats a request
// after a response such as 503 with Retry-After, and the second response may be "already exists" or
// an exceeded quota. After a deletion that the API server refused (conflict, forbidden, not found,
// too many requests and others), the expectation is dropped.
//
// It distinguishes errors by type, and not by text. A nil error changes nothing.
func (e Expectations) Failed(kind, name string, err error) (next Expectations, look bool) {
	creates := slices.ContainsFunc(e, func(x expectation) bool { return x.is(kind, name) && x.Call == callCreate })
	switch {
	case err == nil:
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
	case creates, apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err):
		look = true
	default:
		return e.without(func(x expectation) bool { return x.is(kind, name) }), false
	}
	return slices.Clone(e), look
}

// Observe drops the expectations that the cache shows. find returns the object of a kind and name
// from the cache, of any owner, or nil. It is called once for each expectation. complete means that
// an object that find does not return does not exist.
//
// The cache shows a creation when the object exists. It shows an update when the object has its
// resource version or a later one, or does not exist. It shows a deletion when the object has a
// deletion timestamp or does not exist. An object with another UID ends the expectation for the
// object before it. Resource versions that cannot be compared count as shown.
func (e Expectations) Observe(find func(kind, name string) metav1.Object, complete bool) Expectations {
	return e.without(func(x expectation) bool { return x.shown(find(x.Kind, x.Name), complete) })
}

func (x expectation) shown(object metav1.Object, complete bool) bool {
	switch {
	case facts.IsNil(object):
		return complete && x.Call != callCreate
	case x.Call == callCreate && x.UID == "":
		return true
	case x.Call != callCreate && object.GetUID() != x.UID: // the cache may still show the object before the created one
		return true
	case x.Call == callDelete:
		return object.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), x.ResourceVersion)
	return err != nil || order >= 0
}

// Looked records a live read of an object. live is the object, or nil if the API server returned
// NotFound. Do not call it for a failed read. An object of another kind changes nothing.
//
//   - The creation or update of an object is dropped if the object does not exist, or if another
//     object has its name. The creation of an object with a new controller is dropped, too, because
//     a list of the objects of the former controller may never show it.
//   - A deletion is dropped if the object exists and is not being deleted.
//   - All other expectations stay until the cache shows them.
func (e Expectations) Looked(kind, name string, live metav1.Object, at time.Time) Expectations {
	if !facts.IsNil(live) && facts.KindOf(live) != kind {
		return slices.Clone(e)
	}
	next := e.without(func(x expectation) bool { return x.is(kind, name) && x.pointless(live) })
	for i := range next {
		if next[i].is(kind, name) {
			next[i].At = at
		}
	}
	return next
}

func (x expectation) pointless(live metav1.Object) bool {
	switch gone := facts.IsNil(live); {
	case x.Call == callDelete:
		return !gone && live.GetUID() == x.UID && live.GetDeletionTimestamp() == nil
	case gone:
		return true
	case x.UID == "": // created, and not in the cache yet
		return false
	}
	return live.GetUID() != x.UID || x.Call == callCreate && facts.ControllerOf(live) != x.Owner
}

// Creates returns the creations.
func (e Expectations) Creates() Expectations {
	return e.without(func(x expectation) bool { return x.Call != callCreate })
}

// Deletes returns the deletions.
func (e Expectations) Deletes() Expectations {
	return e.without(func(x expectation) bool { return x.Call != callDelete })
}

// Updates returns the updates.
func (e Expectations) Updates() Expectations {
	return e.without(func(x expectation) bool { return x.Call != callUpdate })
}

func (x expectation) is(kind, name string) bool { return x.Kind == kind && x.Name == name }

// put returns a copy with one more expectation, sorted by kind and name.
func (e Expectations) put(x expectation) Expectations {
	next := append(e.without(func(o expectation) bool { return o.is(x.Kind, x.Name) }), x)
	slices.SortFunc(next, func(a, b expectation) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return next
}

// without returns a copy without the expectations for which drop returns true. It returns nil for
// none.
func (e Expectations) without(drop func(expectation) bool) Expectations {
	var kept Expectations
	for _, x := range e {
		if !drop(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// Listed returns expectations for everything that a live list shows and a cache does not show yet:
// objects that are missing, objects of older versions, and objects that no longer exist. live and
// cached are all objects of one owner; nil objects are skipped. After that, the cache is as new as
// the list once the expectations are observed.
//
// The first list of a new process may be older than the last writes of the process before it. So a
// controller makes one live list before its first creation or deletion for an owner.
func Listed[T metav1.Object](e Expectations, live, cached []T, at time.Time) Expectations {
	shown := make(map[string]T, len(cached))
	for _, o := range cached {
		if !facts.IsNil(o) {
			shown[o.GetName()] = o
		}
	}
	for _, o := range live {
		if facts.IsNil(o) {
			continue
		}
		c, found := shown[o.GetName()]
		switch {
		case !found || c.GetUID() != o.GetUID():
			e = e.Created(o, at)
		case o.GetDeletionTimestamp() != nil && c.GetDeletionTimestamp() == nil:
			e = e.Deleting(facts.KindOf(o), o.GetName(), o.GetUID(), at)
		case older(c, o):
			e = e.Updated(o, at)
		}
		delete(shown, o.GetName())
	}
	for _, o := range shown { // the order has no effect
		e = e.Deleting(facts.KindOf(o), o.GetName(), o.GetUID(), at)
	}
	return e
}

// older reports whether a has an older version than b. Versions that cannot be compared are not.
func older(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
