// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"slices"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Traits are the properties of a phase that decisions use. A new phase needs a row in the
// table of traits, and rows in the table of transitions.
type Traits struct {
	// Rank is the order of scale-down: machines with the lowest rank are deleted first.
	Rank int
	// Available means that the VM runs, and that its Node is healthy if there is a target cluster.
	Available bool
	// Updating means that the Node takes part in an in-place update that has not failed.
	Updating bool
	// Trouble means that the machine needs attention.
	Trouble bool

	// Serving means that the machine does not count as being replaced.
	Serving bool
	// MayFail means that the cache may not show yet that the machine failed.
	MayFail bool
	// Searched means that the VM is looked up while its Node is missing or not ready.
	Searched bool

	// Metric is the value of the phase in metrics. Phases that have 0 in MCM have values of their own.
	Metric int
}

// otherMetric is the value of the empty phase and of unknown phases in metrics.
const otherMetric = 6

// highestRank is the rank of the phases whose machines serve, and of unknown phases.
const highestRank = 9

// Phases returns all phases, and the empty phase of a new machine, in no order.
func Phases() []v1alpha1.MachinePhase { return slices.Collect(maps.Keys(traits)) }

// Exists reports whether a phase is one of the API, or the empty phase of a new machine.
func Exists(phase v1alpha1.MachinePhase) bool {
	_, exists := traits[phase]
	return exists
}

// traits is the table of phases. A new machine has the empty phase. The order is that of MCM,
// except for the empty phase and the phases of in-place updates, which have rank 0 in MCM.
var traits = map[v1alpha1.MachinePhase]Traits{
	v1alpha1.MachineTerminating:             {Rank: 0, Metric: -4},
	v1alpha1.MachineFailed:                  {Rank: 1, Trouble: true, Metric: -3},
	v1alpha1.MachineInPlaceUpdateFailed:     {Rank: 2, Trouble: true, MayFail: true, Metric: 5},
	v1alpha1.MachineCrashLoopBackOff:        {Rank: 3, Trouble: true, Metric: -2},
	v1alpha1.MachineUnknown:                 {Rank: 4, Trouble: true, Serving: true, MayFail: true, Searched: true, Metric: -1},
	"":                                      {Rank: 5, Metric: otherMetric},
	v1alpha1.MachinePending:                 {Rank: 6, Searched: true},
	v1alpha1.MachineInPlaceUpdating:         {Rank: 7, Updating: true, Metric: 3},
	v1alpha1.MachineAvailable:               {Rank: 8, Available: true, Metric: 2},
	v1alpha1.MachineRunning:                 {Rank: highestRank, Available: true, Serving: true, MayFail: true, Metric: 1},
	v1alpha1.MachineInPlaceUpdateSuccessful: {Rank: highestRank, Updating: true, Metric: 4},
}

// TraitsOf returns the traits of a phase. An unknown phase has the highest rank, the
// metric of the empty phase and no other trait.
func TraitsOf(phase v1alpha1.MachinePhase) Traits {
	if t, exists := traits[phase]; exists {
		return t
	}
	return Traits{Rank: highestRank, Metric: otherMetric}
}

// Rank returns the rank of a machine for scale-down by its phase: see [Traits.Rank]. It is 0
// with a deletion timestamp. A nil machine has the highest rank.
func Rank(m *v1alpha1.Machine) int {
	switch {
	case m == nil:
		return highestRank
	case m.DeletionTimestamp != nil:
		return 0
	default:
		return TraitsOf(m.Status.CurrentStatus.Phase).Rank
	}
}

// Replacements returns how often a machine counts as being replaced: not if it serves or is preserved,
// and once more while it is Terminating, for the time until its replacement exists.
func Replacements(m *v1alpha1.Machine) int {
	n, status := 0, m.Status.CurrentStatus
	if status.Phase == v1alpha1.MachineTerminating {
		n++
	}
	if status.PreserveExpiryTime == nil && !TraitsOf(status.Phase).Serving {
		n++
	}
	return n
}
