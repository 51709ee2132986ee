// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// releasedAnnotation has the UID of the owner that released an object because its selector did not
// match. Another owner that adopts the object removes it. It bounds the machines that are created
// if another client removes the labels of each new machine.
const releasedAnnotation = "machinist.dev/released-by"

// Claim returns which objects an owner of a kind has, adopts and releases, and which it released
// earlier. See machineset.Claim. A nil selector matches nothing.
func Claim[T interface {
	comparable
	metav1.Object
	runtime.Object
}](owner metav1.Object, kind string, s *metav1.LabelSelector, objects []T) (owned, released []T, adopt, release []machinist.Update) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	usable, leaving := err == nil && !selector.Empty() && s != nil, owner.GetDeletionTimestamp() != nil
	var none T
	for _, object := range objects {
		if object == none || object.GetUID() == "" || owner.GetUID() == "" || object.GetNamespace() != owner.GetNamespace() {
			continue
		}
		selected := usable && selector.Matches(labels.Set(object.GetLabels()))
		switch controller := metav1.GetControllerOfNoCopy(object); {
		case controller != nil && controller.UID != owner.GetUID():
		case controller != nil && (selected || !usable):
			owned = append(owned, object)
		case controller != nil && !leaving:
			next := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
			next.SetOwnerReferences(foreignOwners(owner.GetUID(), next))
			annotations := next.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[releasedAnnotation] = string(owner.GetUID())
			next.SetAnnotations(annotations)
			release = append(release, machinist.Update{Before: object, Object: next, Unchanged: true, Changes: []string{"released by " + owner.GetName()}})
		case controller != nil: // it is no longer selected
		case selected && !leaving && object.GetDeletionTimestamp() == nil:
			next := object.DeepCopyObject().(T) //nolint:forcetypeassert // as above
			next.SetOwnerReferences(append(foreignOwners(owner.GetUID(), next), *metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind(kind))))
			delete(next.GetAnnotations(), releasedAnnotation)
			adopt = append(adopt, machinist.Update{Before: object, Object: next, Unchanged: true, Changes: []string{"adopted by " + owner.GetName()}})
		case wasReleased(owner, object):
			released = append(released, object)
		}
	}
	return owned, released, adopt, release
}

// foreignOwners returns the owner references of an object to others than this owner.
func foreignOwners(owner types.UID, object metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

// wasReleased reports whether the owner released this object, and no owner has adopted or deleted
// it since.
func wasReleased(owner, object metav1.Object) bool {
	return owner.GetUID() != "" && object.GetNamespace() == owner.GetNamespace() &&
		object.GetAnnotations()[releasedAnnotation] == string(owner.GetUID()) &&
		object.GetDeletionTimestamp() == nil && metav1.GetControllerOfNoCopy(object) == nil
}

// ReleasedBy returns the machines that a set released and that still exist, by name and each once.
func ReleasedBy(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) []*v1alpha1.Machine {
	var released []*v1alpha1.Machine
	for _, m := range machines {
		if m != nil && !Leaving(m) && wasReleased(set, m) {
			released = append(released, m)
		}
	}
	slices.SortFunc(released, CompareNames)
	return slices.CompactFunc(released, func(a, b *v1alpha1.Machine) bool { return a.UID == b.UID && a.Name == b.Name })
}
