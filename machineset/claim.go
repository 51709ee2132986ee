// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Owner is the object that claims others: a set its machines, a deployment
// its sets. An Owner without a UID owns nothing and adopts nothing.
type Owner struct {
	// Kind and group of the owner, as they are written into references.
	schema.GroupVersionKind
	// Namespace and Name of the owner. Objects of other namespaces are never
	// claimed.
	Namespace, Name string
	// UID by which references are compared.
	UID types.UID
	// Deleting says that the owner is being deleted: it keeps what it has, and
	// neither adopts nor releases.
	Deleting bool
}

// OwnerSet returns a set as an owner; nil gives the zero Owner.
func OwnerSet(set *v1alpha1.MachineSet) Owner {
	if set == nil {
		return Owner{}
	}
	return ownerOf("MachineSet", set)
}

// OwnerDeployment returns a deployment as an owner; nil gives the zero Owner.
func OwnerDeployment(d *v1alpha1.MachineDeployment) Owner {
	if d == nil {
		return Owner{}
	}
	return ownerOf("MachineDeployment", d)
}

func ownerOf(kind string, object metav1.Object) Owner {
	return Owner{
		GroupVersionKind: v1alpha1.SchemeGroupVersion.WithKind(kind),
		Namespace:        object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Deleting: object.GetDeletionTimestamp() != nil,
	}
}

// Reference returns the reference by which an object names its owner and
// controller. It blocks the deletion of the owner in the foreground.
func (o Owner) Reference() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: o.GroupVersion().String(), Kind: o.Kind, Name: o.Name, UID: o.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// MayAdopt checks a live read of the owner before the first adoption: live is
// nil if the API server says that there is none. It returns an error if the owner is
// gone, was replaced by another object of its name, or is being deleted.
func (o Owner) MayAdopt(live metav1.Object) error {
	switch {
	case isNil(live):
		return fmt.Errorf("owner %s is gone", o.Name)
	case live.GetUID() != o.UID || o.UID == "":
		return fmt.Errorf("owner %s has been replaced by another object of its name", o.Name)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("owner %s is being deleted", o.Name)
	default:
		return nil
	}
}

// Claims is what an owner has, and what it is about to take or let go.
type Claims[T metav1.Object] struct {
	// Owned are the objects of the owner, in the order in which they came.
	Owned []T
	// Released are objects which the owner has let go before, which still exist and
	// are not leaving, and which nobody has taken since; see [ReleasedAnnotation].
	Released []T
	// Adopt are the objects that the owner takes. Before the first of them is
	// written, the owner has to be read live and [Owner.MayAdopt] asked.
	Adopt []OwnersEdit
	// Release are the objects that the owner lets go. That one of them is gone
	// (NotFound), or was replaced (Invalid), is as good.
	Release []OwnersEdit
}

// NeedsLiveOwner reports whether the owner has to be read live, and
// [Owner.MayAdopt] asked, before anything of Adopt is written.
func (c Claims[T]) NeedsLiveOwner() bool { return len(c.Adopt) > 0 }

// Settled reports whether nothing is to be taken or let go. Until that is so,
// Owned is not the whole truth: pass it to [Observation].Complete.
func (c Claims[T]) Settled() bool { return len(c.Adopt) == 0 && len(c.Release) == 0 }

// ClaimSelector returns the selector by which a set claims its machines. It is nil
// while [Validate] refuses the spec, also for a nil set: with a nil selector [Claim]
// adopts nothing and releases nothing. The result is that of the set, not a copy.
func ClaimSelector(set *v1alpha1.MachineSet) *metav1.LabelSelector {
	if len(Validate(set)) > 0 {
		return nil
	}
	return set.Spec.Selector
}

// Claim sorts objects by what an owner does with them. It writes nothing. Of owner
// references, only those marked as controller count.
//
//   - An object of another namespace or controller is left alone, as is every object if
//     the owner has no UID.
//   - An object of the owner is owned. If it is not selected, it is released, unless the
//     owner is being deleted.
//   - A selected object without a controller is adopted, unless it or the owner is being
//     deleted.
//
// A selector that is nil, empty or cannot be parsed selects nothing, and so
// nothing is adopted; the reference system adopts everything in the namespace.
// As such a selector does not say either what is no longer wanted, nothing is
// released, and objects that refer to the owner stay owned.
//
// Nil objects, and objects without a UID, are skipped.
func Claim[T metav1.Object](o Owner, s *metav1.LabelSelector, objects []T) Claims[T] {
	selector, err := selectorOf(s)
	usable := err == nil && !selector.Empty()
	var c Claims[T]
	for _, object := range objects {
		if isNil(object) || object.GetUID() == "" || o.UID == "" || object.GetNamespace() != o.Namespace {
			continue
		}
		selected := usable && selector.Matches(labels.Set(object.GetLabels()))
		switch controller := metav1.GetControllerOfNoCopy(object); {
		case controller != nil && controller.UID != o.UID:
		case controller != nil && (selected || !usable):
			c.Owned = append(c.Owned, object)
		case controller != nil && !o.Deleting:
			c.Release = append(c.Release, release(o, object))
		case controller != nil: // it is no longer selected
		case selected && !o.Deleting && object.GetDeletionTimestamp() == nil:
			c.Adopt = append(c.Adopt, adoption(o, object))
		case wasReleased(o, object):
			c.Released = append(c.Released, object)
		}
	}
	return c
}

func adoption(o Owner, object metav1.Object) OwnersEdit {
	edit := ownersEdit(object, append(foreignOwners(o, object), o.Reference()))
	if _, found := object.GetAnnotations()[ReleasedAnnotation]; found {
		edit.ReleasedBy = new("")
	}
	return edit
}

func release(o Owner, object metav1.Object) OwnersEdit {
	edit := ownersEdit(object, foreignOwners(o, object))
	edit.ReleasedBy = new(string(o.UID))
	return edit
}

func foreignOwners(o Owner, object metav1.Object) []metav1.OwnerReference {
	refs := make([]metav1.OwnerReference, 0, len(object.GetOwnerReferences())+1)
	for _, ref := range object.GetOwnerReferences() {
		if ref.UID != o.UID {
			refs = append(refs, *ref.DeepCopy())
		}
	}
	return refs
}

func ownersEdit(object metav1.Object, refs []metav1.OwnerReference) OwnersEdit {
	return OwnersEdit{
		Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		OwnerReferences: refs,
	}
}

// isNil tells a nil pointer in an interface from an object.
func isNil(object metav1.Object) bool {
	if object == nil {
		return true
	}
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// wasReleased reports whether the owner has let this object go, and no owner has
// taken it, or is deleting it, since.
func wasReleased(o Owner, object metav1.Object) bool {
	return o.UID != "" && object.GetNamespace() == o.Namespace &&
		object.GetAnnotations()[ReleasedAnnotation] == string(o.UID) &&
		object.GetDeletionTimestamp() == nil && metav1.GetControllerOfNoCopy(object) == nil
}

// releasedBy returns the machines that this set let go and that are still there,
// by name and each once.
func releasedBy(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	var released []*v1alpha1.Machine
	for _, m := range machines {
		if m != nil && !Leaving(m) && wasReleased(OwnerSet(set), m) {
			released = append(released, m)
		}
	}
	slices.SortFunc(released, compareNames)
	return slices.CompactFunc(released, func(a, b *v1alpha1.Machine) bool { return a.UID == b.UID && a.Name == b.Name })
}
