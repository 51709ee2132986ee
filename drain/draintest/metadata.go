// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errModified is the text of the API server about a conflict.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// placeIn sets the namespace of an object to that of its request, or returns an error if they differ.
func placeIn(k *kind, namespace string, m metav1.Object) error {
	switch {
	case !k.clusterScoped && namespace == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	case !k.clusterScoped && m.GetNamespace() == "":
		m.SetNamespace(namespace)
	case m.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// checkVersion is the optimistic lock. An update without version, or with 0, is unconditional for most built-in kinds, and
// an error for custom kinds.
func checkVersion(k *kind, was, m metav1.Object) error {
	version, err := parseVersion(m.GetResourceVersion())
	switch {
	case err != nil:
		return internal(err.Error())
	case m.GetResourceVersion() == was.GetResourceVersion():
		return nil
	case version == 0 && !k.locked:
		m.SetResourceVersion(was.GetResourceVersion())
		return nil
	case version == 0:
		return invalid(k, was.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	default:
		return apierrors.NewConflict(k.resource(), was.GetName(), errModified)
	}
}

// keepSystemFields restores the fields that clients cannot change.
func keepSystemFields(was, m metav1.Object) {
	if m.GetUID() == "" {
		m.SetUID(was.GetUID())
	}
	if m.GetDeletionTimestamp() == nil {
		m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetGeneration(was.GetGeneration())
	m.SetSelfLink(was.GetSelfLink())
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetManagedFields(was.GetManagedFields())
}

// checkUpdate returns an error for malformed metadata, or for a change of an immutable field.
func checkUpdate(k *kind, was, m metav1.Object) error {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(m, was, path)
	errs = append(errs, apivalidation.ValidateFinalizers(m.GetFinalizers(), path.Child("finalizers"))...)
	if len(errs) > 0 {
		return invalid(k, was.GetName(), errs...)
	}
	return nil
}

// tidyMeta makes empty fields of the metadata absent.
func tidyMeta(m metav1.Object) {
	if len(m.GetLabels()) == 0 {
		m.SetLabels(nil)
	}
	if len(m.GetAnnotations()) == 0 {
		m.SetAnnotations(nil)
	}
	if len(m.GetFinalizers()) == 0 {
		m.SetFinalizers(nil)
	}
	if len(m.GetOwnerReferences()) == 0 {
		m.SetOwnerReferences(nil)
	}
}

// uidConflict returns the error of an update with another UID.
func uidConflict(k *kind, name string, want, got types.UID) error {
	return apierrors.NewConflict(k.resource(), name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", want, got))
}

func invalid(k *kind, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, errs)
}

// internal returns a 500 without a reason.
func internal(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message,
	}}
}
