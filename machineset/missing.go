// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Missing returns how many machines sets want that do not exist. It is what
// [machine.Siblings] asks for: between the end of a machine and the creation of the
// one in its place nothing else tells that it is being replaced. Machines on their
// way out exist until they are gone.
//
// The machines may be those of other sets, too; they belong to the set that controls
// them. Sets that create none count for nothing: those which are being deleted, or
// may not create machines (see [ScaleUpDisabled]). Nil sets and machines are skipped.
func Missing(sets []*v1alpha1.MachineSet, machines []*v1alpha1.Machine) int {
	exist := map[types.UID]int{}
	for _, m := range machines {
		if m == nil {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			exist[owner.UID]++
		}
	}
	n := 0
	for _, s := range sets {
		if s != nil && s.DeletionTimestamp == nil && !ScaleUpDisabled(s) {
			n += max(0, int(s.Spec.Replicas)-exist[s.UID])
		}
	}
	return n
}
