// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
