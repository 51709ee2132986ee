// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// releasedAnnotation has the UID of the owner that released an object because its selector did not
// match. Another owner that adopts the object removes it. It bounds the machines that are created
// if another client removes the labels of each new machine.
const releasedAnnotation = "machinist.dev/released-by"

// Owner is the object that claims others: a set claims machines, a deployment claims sets. An Owner
// without a UID owns and adopts nothing.
type Owner struct {
	// GroupVersionKind is written into owner references.
	schema.GroupVersionKind
	// Namespace and Name are those of the owner. Objects of other namespaces are not claimed.
	Namespace, Name string
	// UID is compared with the UIDs of owner references.
	UID types.UID
	// Deleting means that the owner is being deleted: it adopts and releases nothing.
	Deleting bool
}

// OwnerSet returns a set as an owner. A nil set is the zero Owner.
func OwnerSet(set *v1alpha1.MachineSet) Owner {
	if set == nil {
		return Owner{}
	}
	return ownerOf("MachineSet", set)
}

// OwnerDeployment returns a deployment as an owner. A nil deployment is the zero Owner.
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

// Reference returns the owner reference that makes the owner the controller of an object. It blocks
// a foreground deletion of the owner.
func (o Owner) Reference() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: o.GroupVersion().String(), Kind: o.Kind, Name: o.Name, UID: o.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// MayAdopt returns an error if live, the owner as read from the API server, does not exist (nil),
// is another object of the same name, or is being deleted. Call it before the first adoption.
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

// Claims are the objects of an owner, and those that it adopts and releases.
type Claims[T metav1.Object] struct {
	// Owned are the objects of the owner, in the order of the argument.
	Owned []T
	// Released are the objects that the owner released earlier, that no other owner controls, and
	// that are not leaving: see [Claim].
	Released []T
	// Adopt are the updates of the objects to adopt. Before the first write, read the owner from the
	// API server and call [Owner.MayAdopt].
	Adopt []machinist.Update
	// Release are the updates of the objects to release. The error NotFound of a write can be
	// ignored.
	Release []machinist.Update
}

// Settled reports whether nothing is adopted or released. Until then Owned is not complete: see
// [Observation].Complete.
func (c Claims[T]) Settled() bool { return len(c.Adopt) == 0 && len(c.Release) == 0 }

// ClaimSelector returns the selector by which a set claims machines, and nil for a nil set or one
// that [Validate] refuses: with a nil selector [Claim] adopts and releases nothing. The result is
// not a copy.
func ClaimSelector(set *v1alpha1.MachineSet) *metav1.LabelSelector {
	if len(Validate(set)) > 0 {
		return nil
	}
	return set.Spec.Selector
}

// Claim returns which objects an owner has, adopts and releases. It writes nothing. Only owner
// references with controller: true count.
//
//   - An object of another namespace or of another controller is ignored, and so is every object if
//     the owner has no UID.
//   - An object of the owner is owned. If the selector does not match it, it is released, unless
//     the owner is being deleted.
//   - An object that the selector matches and that has no controller is adopted, unless it or the
//     owner is being deleted.
//
// A selector that is nil, empty or invalid matches nothing, so nothing is adopted. Nothing is
// released either, and objects that refer to the owner stay owned. (MCM adopts every object in the
// namespace.) Nil objects and objects without a UID are skipped.
func Claim[T interface {
	metav1.Object
	runtime.Object
}](o Owner, s *metav1.LabelSelector, objects []T) Claims[T] {
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
			next := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
			next.SetOwnerReferences(foreignOwners(o, next))
			annotations := next.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[releasedAnnotation] = string(o.UID)
			next.SetAnnotations(annotations)
			c.Release = append(c.Release, machinist.Update{Before: object, Object: next, Unchanged: true, Changes: []string{"released by " + o.Name}})
		case controller != nil: // it is no longer selected
		case selected && !o.Deleting && object.GetDeletionTimestamp() == nil:
			next := object.DeepCopyObject().(T) //nolint:forcetypeassert // as above
			next.SetOwnerReferences(append(foreignOwners(o, next), o.Reference()))
			delete(next.GetAnnotations(), releasedAnnotation)
			c.Adopt = append(c.Adopt, machinist.Update{Before: object, Object: next, Unchanged: true, Changes: []string{"adopted by " + o.Name}})
		case wasReleased(o, object):
			c.Released = append(c.Released, object)
		}
	}
	return c
}

// foreignOwners returns the owner references of an object to others than this owner.
func foreignOwners(o Owner, object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == o.UID })
}

// isNil reports whether an interface is nil or has a nil pointer.
func isNil(object metav1.Object) bool {
	if object == nil {
		return true
	}
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// wasReleased reports whether the owner released this object, and no owner has adopted or deleted
// it since.
func wasReleased(o Owner, object metav1.Object) bool {
	return o.UID != "" && object.GetNamespace() == o.Namespace &&
		object.GetAnnotations()[releasedAnnotation] == string(o.UID) &&
		object.GetDeletionTimestamp() == nil && metav1.GetControllerOfNoCopy(object) == nil
}

// releasedBy returns the machines that this set released and that still exist, by name and each
// once.
func releasedBy(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	var released []*v1alpha1.Machine
	for _, m := range machines {
		if m != nil && !members.Leaving(m) && wasReleased(OwnerSet(set), m) {
			released = append(released, m)
		}
	}
	slices.SortFunc(released, members.CompareNames)
	return slices.CompactFunc(released, func(a, b *v1alpha1.Machine) bool { return a.UID == b.UID && a.Name == b.Name })
}
