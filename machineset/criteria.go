// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"math"
	"time"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Names of the criteria of this package.
const (
	// ByPreservation is the name of [Preservation].
	ByPreservation = "Preservation"
	// ByPreserver is the name of [Preserver].
	ByPreserver = "Preserver"
	// ByPreservationEnd is the name of [PreservationEnd].
	ByPreservationEnd = "PreservationEnd"
	// ByPriority is the name of [Priority].
	ByPriority = "Priority"
	// ByMark is the name of [Mark].
	ByMark = "Mark"
	// ByHealth is the name of [Health].
	ByHealth = "Health"
	// ByAge is the name of [OldestFirst] and of [NewestFirst].
	ByAge = "Age"
	// ByAvailability is the name of [Availability].
	ByAvailability = "Availability"
	// ByTemplate is the name of [OldTemplate].
	ByTemplate = "Template"
	// ByLoad is the name of [Emptiest].
	ByLoad = "Load"
	// ByName says that only the names differ.
	ByName = "Name"
)

// Preservation lets machines go last that are preserved at the instant now.
func Preservation(now time.Time) Criterion {
	return Criterion{ByPreservation, func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now)) }}
}

// Preserver lets machines go last that a person preserves; those that a set
// preserves of its own accord go before them.
func Preserver(now time.Time) Criterion {
	return Criterion{ByPreserver, func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now) && !AutoPreserved(m)) }}
}

// PreservationEnd lets preserved machines go first whose preservation ends first.
func PreservationEnd(now time.Time) Criterion {
	return Criterion{ByPreservationEnd, func(m *v1alpha1.Machine) int64 {
		if !Preserved(m, now) {
			return 0
		}
		return m.Status.CurrentStatus.PreserveExpiryTime.UnixMicro()
	}}
}

// Priority lets machines go first whose priority is lowest; see [PriorityOf].
func Priority() Criterion {
	return Criterion{ByPriority, func(m *v1alpha1.Machine) int64 { return int64(PriorityOf(m)) }}
}

// Mark lets machines go first that are marked for deletion, those first that
// were marked first.
func Mark() Criterion {
	return Criterion{ByMark, func(m *v1alpha1.Machine) int64 {
		at, ok := MarkedAt(m)
		if !ok {
			return math.MaxInt64
		}
		return at.Unix()
	}}
}

// Health lets machines go first that are worth least; see [machine.PhaseRank].
func Health() Criterion {
	return Criterion{ByHealth, func(m *v1alpha1.Machine) int64 { return int64(machine.PhaseRank(m)) }}
}

// OldestFirst lets machines go first that were created first.
func OldestFirst() Criterion {
	return Criterion{ByAge, func(m *v1alpha1.Machine) int64 { return m.CreationTimestamp.UnixMicro() }}
}

// NewestFirst lets machines go first that were created last.
func NewestFirst() Criterion {
	return Criterion{ByAge, func(m *v1alpha1.Machine) int64 { return -m.CreationTimestamp.UnixMicro() }}
}

// Availability lets machines go first that have not been available for as long as
// settle at the instant now; see [AvailableFor]. Put before all others, it makes a
// set shrink at no cost in availability as long as it can, whatever priorities and
// preservations say.
func Availability(settle time.Duration, now time.Time) Criterion {
	return Criterion{ByAvailability, func(m *v1alpha1.Machine) int64 {
		return last(!Leaving(m) && AvailableFor(m, settle, now))
	}}
}

// OldTemplate lets machines go first that were not made from the present template
// of their set: their class is another one, or labels of the template are missing.
// A nil set has no template, so that all machines are the same.
func OldTemplate(set *v1alpha1.MachineSet) Criterion {
	return Criterion{ByTemplate, func(m *v1alpha1.Machine) int64 {
		if set == nil {
			return 0
		}
		class := set.Spec.Template.Spec.Class
		return last(m.Spec.Class.Kind == class.Kind && m.Spec.Class.Name == class.Name && containsAll(m.Labels, set.Spec.Template.Labels))
	}}
}

// Emptiest lets machines go first on whose Nodes least is at work, by whatever the
// caller counts for the name of a Node. A machine that has no Node has no load; one
// whose Node nobody has counted goes last, as it may be full.
func Emptiest(load map[string]int64) Criterion {
	return Criterion{ByLoad, func(m *v1alpha1.Machine) int64 {
		node := m.Labels[v1alpha1.NodeLabelKey]
		if node == "" {
			return 0
		}
		if n, counted := load[node]; counted {
			return n
		}
		return math.MaxInt64
	}}
}

func last(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
