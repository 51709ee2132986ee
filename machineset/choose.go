// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func (s *pass) counts() Counts {
	c := Counts{Desired: int(s.in.Set.Spec.Replicas), InFlight: len(s.in.InFlight.Creates)}
	for _, m := range s.machines {
		if Leaving(m) {
			continue
		}
		c.Present++
		if !s.asked[m.UID] && !Transferred(m) && m.UID != "" {
			c.Eligible++
		}
	}
	return c
}

// eligible returns the machines among which a set that stays may choose.
func (s *pass) eligible() []*v1alpha1.Machine {
	return slices.DeleteFunc(s.deletable(), Transferred)
}

// deletable returns the machines that are not on their way out already.
func (s *pass) deletable() []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
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
func (s *pass) surplus(eligible []*v1alpha1.Machine, k int) []Delete {
	var named, others []*v1alpha1.Machine
	for _, m := range eligible {
		if NamedByAutoscaler(s.in.Set, m) {
			named = append(named, m)
		} else if k > 0 {
			others = append(others, m)
		}
	}
	var victims []Delete
	for _, m := range FirstToGo(named, len(named), s.now) {
		victims = append(victims, Delete{Name: m.Name, UID: m.UID, Reason: ReasonMarked})
	}
	for _, m := range FirstToGo(others, k-len(named), s.now) {
		victims = append(victims, Delete{Name: m.Name, UID: m.UID, Reason: ReasonTooMany})
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
		} else if gone, reason := ReplaceFailed(m, viewOf(s.in.Nodes, m), s.now); gone {
			more = append(more, Delete{Name: m.Name, UID: m.UID, Reason: reason})
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
	capacity := int(s.in.Set.Spec.AutoPreserveFailedMachineMax)
	var preserved, candidates []*v1alpha1.Machine
	for _, m := range s.machines {
		if !Leaving(m) && AutoPreserved(m) {
			preserved = append(preserved, m)
		}
	}
	chosen := uids(victims)
	for _, m := range eligible {
		if Failed(m) && !chosen[m.UID] {
			candidates = append(candidates, m)
		}
	}
	values := map[types.UID]string{}
	grant, _ := AutoPreserve(candidates, s.in.Nodes, capacity-len(preserved))
	for _, m := range grant {
		values[m.UID] = v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
	}
	_, revoke := AutoPreserve(preserved, s.in.Nodes, capacity-len(preserved))
	for _, m := range revoke {
		values[m.UID] = ""
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
