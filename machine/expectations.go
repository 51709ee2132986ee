// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Expectations are the writes of one process that its cache may not show yet. A
// decision counts them, or waits for them, so that a stale cache does not make it do
// anything twice. The zero Expectations expect nothing. They are a value: methods
// return a changed copy, and they may be stored as JSON. They are not needed across a
// restart if the first cache after the restart is read later than the last write.
//
// A creation and a deletion are recorded before the call, because a call whose answer
// is lost may have had its effect. The result of a write is recorded after the call.
// The passing of time ends no expectation. It ends when the cache shows the effect
// ([Expectations.Observe]), when the API server has refused the call
// ([Expectations.Failed]), or when a live read shows that there is nothing to wait for
// ([Expectations.Looked]).
type Expectations []Expectation

// An Expectation is one write that the cache has to show. There is at most one for a
// kind and name: a later record replaces an earlier one.
type Expectation struct {
	// Kind of the object, for example [KindMachine].
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Call is "create", "delete" or "update".
	Call string `json:"call"`
	// UID of the object; empty for a creation without an answer.
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion that the cache has to show, or a later one; empty as long as the
	// call has no answer.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Owner is the UID of the object's controller as the API server returned it.
	Owner types.UID `json:"owner,omitempty"`
	// At is when the call was made, or the object last read live.
	At time.Time `json:"at"`
}

// Kinds of an [Expectation]. The kind of any other object is the name of its Go type.
const (
	KindMachine = "Machine"    // a *v1alpha1.Machine
	KindSet     = "MachineSet" // a *v1alpha1.MachineSet
	KindNode    = "Node"       // a *corev1.Node
	KindSecret  = "Secret"     // a *corev1.Secret
)

const callCreate, callDelete, callUpdate = "create", "delete", "update"

// Creating records that an object is about to be created.
func (e Expectations) Creating(kind, name string, at time.Time) Expectations {
	return e.put(Expectation{Kind: kind, Name: name, Call: callCreate, At: at})
}

// Deleting records that the object of this UID is about to be deleted.
func (e Expectations) Deleting(kind, name string, uid types.UID, at time.Time) Expectations {
	return e.put(Expectation{Kind: kind, Name: name, Call: callDelete, UID: uid, At: at})
}

// Created records an object as the API server returned it for a create. A nil object
// is not recorded.
func (e Expectations) Created(object metav1.Object, at time.Time) Expectations {
	return e.answered(callCreate, object, at)
}

// Updated records an object as the API server returned it for an update or a patch. A
// nil object is not recorded.
func (e Expectations) Updated(object metav1.Object, at time.Time) Expectations {
	return e.answered(callUpdate, object, at)
}

func (e Expectations) answered(call string, object metav1.Object, at time.Time) Expectations {
	if isNil(object) {
		return slices.Clone(e)
	}
	return e.put(Expectation{
		Kind: kindOf(object), Name: object.GetName(), Call: call, UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Owner: controllerOf(object), At: at,
	})
}

// Failed records that the create or delete call for this name returned an error. Where
// the answer was lost, the expectation stays. look reports that the API server did
// answer, so that a live read can tell at once what became of the call: hand its result
// to [Expectations.Looked].
//
// No answer to a creation proves that there is no object: client-go repeats a request
// after an answer such as 503 with Retry-After, and the answer to the second may be
// "already exists", or that a quota is used up. A deletion was not done where the API
// server answered by a rule (conflict, forbidden, not found, too many requests, …): its
// expectation is dropped.
//
// It decides by the type of the error, never by its text. A nil error changes nothing.
func (e Expectations) Failed(kind, name string, err error) (next Expectations, look bool) {
	creates := slices.ContainsFunc(e, func(x Expectation) bool { return x.is(kind, name) && x.Call == callCreate })
	switch {
	case err == nil:
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
	case creates, apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err):
		look = true
	default:
		return e.without(func(x Expectation) bool { return x.is(kind, name) }), false
	}
	return slices.Clone(e), look
}

// Observe drops the expectations that the cache fulfils. find returns the object of a
// kind and name as the cache shows it, of any owner, or nil. complete says that what
// find does not return does not exist. It is called once for each expectation.
//
// A creation shows when the object does; an update when the object has its resource
// version or a later one, or does not exist; a deletion when the object has a deletion
// timestamp or does not exist. An object of another UID ends the wait for the one before
// it. Resource versions that cannot be compared count as shown.
func (e Expectations) Observe(find func(kind, name string) metav1.Object, complete bool) Expectations {
	return e.without(func(x Expectation) bool { return x.shown(find(x.Kind, x.Name), complete) })
}

func (x Expectation) shown(object metav1.Object, complete bool) bool {
	switch {
	case isNil(object):
		return complete && x.Call != callCreate
	case x.Call == callCreate && x.UID == "":
		return true
	case x.Call != callCreate && object.GetUID() != x.UID: // an object to create may follow one that the cache still shows
		return true
	case x.Call == callDelete:
		return object.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), x.ResourceVersion)
	return err != nil || order >= 0
}

// Looked settles what is expected of a name by a live read: live is the object that was
// read, or nil if the API server says that there is none. Do not call it if the read
// failed. An object of another kind changes nothing.
//
//   - A creation or an update of an object that does not exist, or that another object
//     of its name has replaced, is dropped. So is the creation of an object that has
//     changed its controller: a view of the old controller's objects may never show it.
//   - A deletion that did not happen is dropped: the same object exists and is not being
//     deleted.
//   - Everything else did happen. It is kept until the cache shows it.
func (e Expectations) Looked(kind, name string, live metav1.Object, at time.Time) Expectations {
	if !isNil(live) && kindOf(live) != kind {
		return slices.Clone(e)
	}
	next := e.without(func(x Expectation) bool { return x.is(kind, name) && x.pointless(live) })
	for i := range next {
		if next[i].is(kind, name) {
			next[i].At = at
		}
	}
	return next
}

func (x Expectation) pointless(live metav1.Object) bool {
	switch gone := isNil(live); {
	case x.Call == callDelete:
		return !gone && live.GetUID() == x.UID && live.GetDeletionTimestamp() == nil
	case gone:
		return true
	case x.UID == "": // created, and not shown yet
		return false
	}
	return live.GetUID() != x.UID || x.Call == callCreate && controllerOf(live) != x.Owner
}

// Creates returns the creations.
func (e Expectations) Creates() Expectations {
	return e.without(func(x Expectation) bool { return x.Call != callCreate })
}

// Deletes returns the deletions.
func (e Expectations) Deletes() Expectations {
	return e.without(func(x Expectation) bool { return x.Call != callDelete })
}

func (x Expectation) is(kind, name string) bool { return x.Kind == kind && x.Name == name }

// put returns a copy with one more expectation, ordered by kind and name.
func (e Expectations) put(x Expectation) Expectations {
	next := append(e.without(func(o Expectation) bool { return o.is(x.Kind, x.Name) }), x)
	slices.SortFunc(next, func(a, b Expectation) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return next
}

// without returns a copy without those that drop names; nil if none is left.
func (e Expectations) without(drop func(Expectation) bool) Expectations {
	var kept Expectations
	for _, x := range e {
		if !drop(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// kindOf returns the name of the type of an object that is not nil.
func kindOf(object metav1.Object) string {
	return reflect.Indirect(reflect.ValueOf(object)).Type().Name()
}

// isNil reports whether an object is nil, or a nil pointer.
func isNil(object metav1.Object) bool {
	return object == nil || reflect.ValueOf(object).Kind() == reflect.Pointer && reflect.ValueOf(object).IsNil()
}

// controllerOf returns the UID of the controller of an object, empty if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}
