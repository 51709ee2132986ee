// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// eligible returns the machines among which a set that stays may choose.
func (s *pass) eligible() []*v1alpha1.Machine {
	return Eligible(s.deletable(), s.in.Expectations)
}

// deletable returns the machines that are not on their way out already, those
// that move to another set included, and says which of them nobody can delete.
func (s *pass) deletable() []*v1alpha1.Machine {
	out := make([]*v1alpha1.Machine, 0, len(s.machines))
	for _, m := range s.machines {
		switch {
		case Leaving(m) || s.asked[m.UID]:
		case m.UID == "":
			s.hold(m.Name, ReasonNoIdentity, "machine has no UID", time.Time{})
		default:
			out = append(out, m)
		}
	}
	return out
}

// surplus chooses the machines that go because of the size of the set, and those
// that were named.
func (s *pass) surplus(eligible []*v1alpha1.Machine) []Delete {
	var victims []Delete
	for _, v := range Choose(s.in.Set, eligible, int(s.in.Set.Spec.Replicas), s.policy.order(s.now)) {
		reason := ReasonTooMany
		if v.By == ByDemand {
			reason = ReasonMarked
		}
		victims = append(victims, Delete{Name: v.Machine.Name, UID: v.Machine.UID, Reason: reason, By: v.By})
	}
	return victims
}

// failed chooses the Failed machines that go, beside those chosen already.
func (s *pass) failed(eligible []*v1alpha1.Machine, victims []Delete, preserve map[types.UID]string) []Delete {
	chosen := uids(victims)
	var more []Delete
	for _, m := range eligible {
		if !Failed(m) || chosen[m.UID] {
			continue
		}
		if preserve[m.UID] != "" {
			s.holdFailed(m, ReasonPreservationAsked)
		} else if gone, reason := ReplaceFailed(m, s.in.Nodes[m.Labels[v1alpha1.NodeLabelKey]], s.now); gone {
			more = append(more, Delete{Name: m.Name, UID: m.UID, Reason: reason, NeverJoined: neverJoined(m)})
		} else {
			s.holdFailed(m, reason)
		}
	}
	return more
}

// preserve returns what becomes of preserve annotations. What is preserved is
// counted, as the status may be of an earlier time; it counts until it is seen to
// leave. Machines that go anyway are not granted anything.
func (s *pass) preserve(eligible []*v1alpha1.Machine, victims []Delete) map[types.UID]string {
	capacity := int(s.in.Set.Spec.AutoPreserveFailedMachineMax) - s.counts.AutoPreserved
	if capacity == 0 {
		return nil
	}
	values := map[types.UID]string{}
	if capacity < 0 {
		_, revoke := AutoPreserve(s.machines, s.in.Nodes, capacity)
		for _, m := range revoke {
			values[m.UID] = ""
		}
		return values
	}
	chosen := uids(victims)
	candidates := slices.DeleteFunc(slices.Clone(eligible), func(m *v1alpha1.Machine) bool { return chosen[m.UID] })
	grant, _ := AutoPreserve(candidates, s.in.Nodes, capacity)
	for _, m := range grant {
		values[m.UID] = v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
	}
	return values
}

func uids(list []Delete) map[types.UID]bool {
	set := make(map[types.UID]bool, len(list))
	for _, d := range list {
		set[d.UID] = true
	}
	return set
}
