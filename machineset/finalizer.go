// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// HasFinalizer reports whether an object carries this controller's finalizer. A
// nil object does not.
func HasFinalizer(object metav1.Object) bool {
	return !isNil(object) && slices.Contains(object.GetFinalizers(), v1alpha1.MCMFinalizerName)
}

// WithFinalizer returns the edit that puts this controller's finalizer on an
// object, and false if it is there already, the object is being deleted (when
// the API server refuses new finalizers), or it is nil.
func WithFinalizer(object metav1.Object) (FinalizersEdit, bool) {
	if isNil(object) || object.GetDeletionTimestamp() != nil || HasFinalizer(object) {
		return FinalizersEdit{}, false
	}
	return finalizersEdit(object, append(slices.Clone(object.GetFinalizers()), v1alpha1.MCMFinalizerName)), true
}

// WithoutFinalizer returns the edit that takes this controller's finalizer off
// an object, and false if it is not there or the object is nil. Whether the
// object may go is not asked here.
func WithoutFinalizer(object metav1.Object) (FinalizersEdit, bool) {
	if !HasFinalizer(object) {
		return FinalizersEdit{}, false
	}
	rest := make([]string, 0, len(object.GetFinalizers()))
	for _, f := range object.GetFinalizers() {
		if f != v1alpha1.MCMFinalizerName {
			rest = append(rest, f)
		}
	}
	return finalizersEdit(object, rest), true
}

func finalizersEdit(object metav1.Object, finalizers []string) FinalizersEdit {
	return FinalizersEdit{
		Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Finalizers: finalizers,
	}
}
