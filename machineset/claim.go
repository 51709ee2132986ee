// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Claims are the objects of an owner, and those that it adopts and releases: the machines of a set, or
// the sets of a deployment.
type Claims[T metav1.Object] struct {
	// Selector selects the objects to list from the API server for the owner. Nil means all, because
	// the selector of an invalid owner may not select its objects.
	Selector *metav1.LabelSelector
	// Owned are the objects of the owner, in the order of the argument.
	Owned []T
	// Released are the objects that the owner released earlier, that no other owner controls, and
	// that are not leaving: see [Claim].
	Released []T
	// Adopt are the updates of the objects to adopt. Before the first write, read the owner from the
	// API server, and claim again if that is another version: the owner may have been deleted.
	Adopt []machinist.Update
	// Release are the updates of the objects to release. The error NotFound of a write can be
	// ignored.
	Release []machinist.Update
}

// Settled reports whether nothing is adopted or released. Until then Owned is not complete: see
// [Observation].Complete.
func (c Claims[T]) Settled() bool { return len(c.Adopt) == 0 && len(c.Release) == 0 }

// Claim returns which machines a set has, adopts and releases. It writes nothing. Only owner
// references with controller: true count.
//
//   - A machine of another namespace or of another controller is ignored, and so is every machine if
//     the set is nil or has no UID.
//   - A machine of the set is owned. If the selector does not match it, it is released, unless
//     the set is being deleted.
//   - A machine that the selector matches and that has no controller is adopted, unless it or the
//     set is being deleted.
//
// For an invalid set nothing is adopted or released, and machines that refer to the set stay owned.
// (MCM adopts every machine in the namespace for an empty selector.) Nil machines and machines without
// a UID are skipped.
func Claim(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) (c Claims[*v1alpha1.Machine]) {
	if set == nil {
		return c
	}
	if len(validate(set)) == 0 {
		c.Selector = set.Spec.Selector
	}
	c.Owned, c.Released, c.Adopt, c.Release = members.Claim(set, v1alpha1.MachineSetKind, c.Selector, machines)
	return c
}
