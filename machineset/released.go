// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ReleasedAnnotation holds the UID of the owner that let an object go, because
// the owner's selector did not match it any more. It goes when another owner takes
// the object. Without it, whoever takes away the labels of each new machine would
// make a set create machines for ever.
const ReleasedAnnotation = "machinist.dev/released-by"

// wasReleased reports whether the owner has let this object go, and nobody has
// it, or is deleting it, since.
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
