// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"errors"
	"reflect"

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

// Why an owner may not adopt; see [Owner.MayAdopt].
var (
	// ErrOwnerGone means that the owner does not exist any more.
	ErrOwnerGone = errors.New("owner is gone")
	// ErrOwnerReplaced means that another object of the same name exists.
	ErrOwnerReplaced = errors.New("owner has been replaced by another object of its name")
	// ErrOwnerDeleting means that the owner has been deleted.
	ErrOwnerDeleting = errors.New("owner is being deleted")
)

// MayAdopt checks a live read of the owner before the first adoption: live is
// nil if the API server says that there is none. It returns [ErrOwnerGone],
// [ErrOwnerReplaced] or [ErrOwnerDeleting], or nil if the owner may adopt.
func (o Owner) MayAdopt(live metav1.Object) error {
	switch {
	case isNil(live):
		return ErrOwnerGone
	case live.GetUID() != o.UID || o.UID == "":
		return ErrOwnerReplaced
	case live.GetDeletionTimestamp() != nil:
		return ErrOwnerDeleting
	default:
		return nil
	}
}

// A Verdict is what becomes of one object when an owner looks at it.
type Verdict string

// The verdicts.
const (
	// VerdictForeign leaves an object that another owner controls, or that is in
	// another namespace.
	VerdictForeign Verdict = "ControlledByAnother"
	// VerdictOwned counts an object that refers to this owner and is selected.
	VerdictOwned Verdict = "Owned"
	// VerdictRelease takes this owner's reference off an object that is no longer
	// selected.
	VerdictRelease Verdict = "NoLongerSelected"
	// VerdictLeft leaves an object that is no longer selected, as the owner is
	// being deleted.
	VerdictLeft Verdict = "OwnerDeleting"
	// VerdictUnrelated leaves an object without a controller, which is not
	// selected, or which the owner is past adopting.
	VerdictUnrelated Verdict = "Unrelated"
	// VerdictDying leaves an object without a controller, as it is being deleted.
	VerdictDying Verdict = "ObjectDeleting"
	// VerdictAdopt makes this owner the controller of an object that has none.
	VerdictAdopt Verdict = "Adopt"
)

// Judge returns what becomes of one object; selected says whether the owner's
// selector matches its labels. A nil object, and an object or owner without a
// UID, is unrelated. Of owner references, only those marked as controller count.
func Judge(o Owner, object metav1.Object, selected bool) Verdict {
	if isNil(object) || object.GetUID() == "" || o.UID == "" {
		return VerdictUnrelated
	}
	if object.GetNamespace() != o.Namespace {
		return VerdictForeign
	}
	controller := metav1.GetControllerOfNoCopy(object)
	switch {
	case controller != nil && controller.UID != o.UID:
		return VerdictForeign
	case controller != nil && selected:
		return VerdictOwned
	case controller != nil && o.Deleting:
		return VerdictLeft
	case controller != nil:
		return VerdictRelease
	case o.Deleting || !selected:
		return VerdictUnrelated
	case object.GetDeletionTimestamp() != nil:
		return VerdictDying
	default:
		return VerdictAdopt
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
	Adopt []Change[T]
	// Release are the objects that the owner lets go. That one of them is gone
	// (NotFound), or was replaced (Invalid), is as good.
	Release []Change[T]
}

// A Change is one object whose owner references are to change.
type Change[T metav1.Object] struct {
	// Object as it was read.
	Object T
	// Verdict is [VerdictAdopt] or [VerdictRelease].
	Verdict Verdict
	// Edit is the write. It keeps the references of all other owners.
	Edit OwnersEdit
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

// Claim sorts objects by what an owner does with them. It writes nothing.
//
// A selector that is nil, empty or cannot be parsed selects nothing, and so
// nothing is adopted; the reference system adopts everything in the namespace.
// As such a selector does not say either what is no longer wanted, nothing is
// released, and objects that refer to the owner stay owned.
//
// Nil objects are skipped.
func Claim[T metav1.Object](o Owner, s *metav1.LabelSelector, objects []T) Claims[T] {
	selector, err := selectorOf(s)
	usable := err == nil && !selector.Empty()
	var c Claims[T]
	for _, object := range objects {
		if isNil(object) {
			continue
		}
		selected := usable && selector.Matches(labels.Set(object.GetLabels()))
		switch verdict := Judge(o, object, selected); {
		case verdict == VerdictOwned, !usable && (verdict == VerdictRelease || verdict == VerdictLeft):
			c.Owned = append(c.Owned, object)
		case verdict == VerdictAdopt:
			c.Adopt = append(c.Adopt, Change[T]{object, verdict, adoption(o, object)})
		case verdict == VerdictRelease:
			c.Release = append(c.Release, Change[T]{object, verdict, release(o, object)})
		case verdict == VerdictUnrelated && wasReleased(o, object):
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
