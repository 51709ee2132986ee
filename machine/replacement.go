// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Replacing counts the machines of a deployment that are being replaced: those
// neither Running nor Unknown that are not preserved, and once more those that
// are Terminating, so that the gap between a deletion and its replacement stays
// covered. The machine with the UID except does not count; an empty UID excepts
// none.
func Replacing(siblings []*v1alpha1.Machine, except types.UID) int {
	n := 0
	for _, s := range siblings {
		if s == nil || except != "" && s.UID == except {
			continue
		}
		switch phase := s.Status.CurrentStatus.Phase; phase {
		case v1alpha1.MachineRunning, v1alpha1.MachineUnknown:
		default:
			if s.Status.CurrentStatus.PreserveExpiryTime == nil {
				n++
			}
			if phase == v1alpha1.MachineTerminating {
				n++
			}
		}
	}
	return n
}

// replacementLimit returns what keeps the machine from being failed for bad
// health. A machine of no deployment is not limited, as in the reference system.
func (l life) replacementLimit() (Hold, bool) {
	deployment := l.m.Labels[v1alpha1.LabelKeyMachineDeploymentName]
	if deployment == "" {
		return Hold{}, false
	}
	h := Hold{Subject: "machinedeployment/" + deployment, Reason: ReasonReplacementLimit, Until: l.now.Add(actAgain)}
	if !l.in.Siblings.Complete {
		h.Message = "the other machines are not known"
		return h, true
	}
	if n := Replacing(l.in.Siblings.Machines, l.m.UID); n >= l.p.MaxReplacements {
		h.Message = fmt.Sprintf("%d being replaced >= %d allowed", n, l.p.MaxReplacements)
		return h, true
	}
	return Hold{}, false
}
