// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ours returns the machines of the set, each once and sorted by name, in a new slice, and holds for
// the machines of other controllers.
func ours(in Observation) ([]*v1alpha1.Machine, []machinist.Hold) {
	machines := make([]*v1alpha1.Machine, 0, len(in.Machines))
	var holds []machinist.Hold
	for _, m := range in.Machines {
		switch {
		case m == nil:
		case foreign(in.Set, m):
			holds = append(holds, machinist.Hold{Subject: machineSubject(m.Name), Reason: reasonNotOurs, Message: "another object controls it, so it does not count"})
		default:
			machines = append(machines, m)
		}
	}
	slices.SortFunc(holds, func(a, b machinist.Hold) int { return strings.Compare(a.Subject, b.Subject) })
	return members.Distinct(machines), holds
}

func foreign(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	controller := metav1.GetControllerOfNoCopy(m)
	return m.Namespace != set.Namespace || controller != nil && controller.UID != set.UID
}
