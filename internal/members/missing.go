// SPDX-License-Identifier: Apache-2.0

package members

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Missing returns how many machines the sets want and do not have, for [machine.Siblings]: between
// the deletion of a machine and the creation of its replacement no object shows that it is being
// replaced. Machines that are being deleted count as existing.
//
// The machines may include those of other sets. Sets that are being deleted or that may not create
// machines (label node.machine.sapcloud.io/scale-up-disabled) do not count. Nil sets and machines are skipped.
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
