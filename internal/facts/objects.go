// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// NodeKind is the kind of a Node, as [KindOf] returns it.
const NodeKind = "Node"

// KindOf returns the name of the type of an object that is not nil.
func KindOf(object any) string {
	return reflect.Indirect(reflect.ValueOf(object)).Type().Name()
}

// IsNil reports whether an object is nil, or a nil pointer.
func IsNil(object metav1.Object) bool {
	return object == nil || reflect.ValueOf(object).Kind() == reflect.Pointer && reflect.ValueOf(object).IsNil()
}

// ControllerOf returns the UID of the controller of an object, empty if it has none.
func ControllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// TokenOwner returns the UID of the machine of a bootstrap token, or "" for another Secret. It is
// "" for nil.
func TokenOwner(s *corev1.Secret) types.UID {
	if s == nil {
		return ""
	}
	return types.UID(s.Labels[v1alpha1.TokenOwnerLabel])
}
