// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// deletable returns the machines whose deletion was not requested, including those that move to
// another set, and holds for those that cannot be deleted.
func deletable(machines []*v1alpha1.Machine, asked map[types.UID]bool) (out []*v1alpha1.Machine, holds []machinist.Hold) {
	out = make([]*v1alpha1.Machine, 0, len(machines))
	for _, m := range machines {
		switch {
		case members.Leaving(m) || asked[m.UID]:
		case m.UID == "":
			holds = append(holds, machinist.Hold{Subject: machineSubject(m.Name), Reason: ReasonInvalid, Message: "it has no UID, which the API server sets: set metadata.uid in tests"})
		default:
			out = append(out, m)
		}
	}
	return out, holds
}

// surplus returns the deletions because of the size of the set or because an autoscaler named
// machines.
func surplus(set *v1alpha1.MachineSet, eligible []*v1alpha1.Machine, o Order) []machinist.Delete {
	var victims []machinist.Delete
	for _, v := range members.Choose(set, eligible, int(set.Spec.Replicas), o) {
		reason := reasonTooMany
		if v.By == members.ByDemand {
			reason = reasonMarked
		}
		victims = append(victims, deletion(v.Machine, reason, v.By))
	}
	return victims
}

// failed returns the deletions of Failed machines, and holds for the Failed machines that stay.
// preserve has the new preserve annotations.
func failed(machines []*v1alpha1.Machine, preserve map[types.UID]string, nodes map[string]machine.NodeView, now time.Time) (goes []machinist.Delete, holds []machinist.Hold) {
	for _, m := range machines {
		if !members.Failed(m) {
			continue
		}
		node := nodes[m.Labels[v1alpha1.NodeLabelKey]]
		gone, reason := ReplaceFailed(m, node, time.Time{}, now)
		if preserve[m.UID] != "" {
			gone, reason = false, ReasonPreservationAsked
		}
		if gone {
			goes = append(goes, deletion(m, reason, ""))
			continue
		}
		holds = append(holds, machinist.Hold{Subject: machineSubject(m.Name), Reason: reason, Message: "it is Failed and stays", Until: staysUntil(m, node, reason, now)})
	}
	return goes, holds
}

// staysUntil returns when the reason for which a Failed machine stays ends. Zero means when the
// machine changes.
func staysUntil(m *v1alpha1.Machine, node machine.NodeView, reason machinist.Reason, now time.Time) time.Time {
	switch reason {
	case ReasonPreserved:
		return m.Status.CurrentStatus.PreserveExpiryTime.Time
	case reasonNodeReadyAgain:
		return mayRecoverUntil(m, node, time.Time{}, now)
	default:
		return time.Time{}
	}
}

// without returns the machines that are not chosen.
func without(machines []*v1alpha1.Machine, chosen []machinist.Delete) []*v1alpha1.Machine {
	gone := make(map[machinist.Object]bool, len(chosen))
	for _, d := range chosen {
		gone[d.Object] = true
	}
	out := make([]*v1alpha1.Machine, 0, len(machines))
	for _, m := range machines {
		if !gone[m] {
			out = append(out, m)
		}
	}
	return out
}
