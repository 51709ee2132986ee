// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A Size is what a set has.
type Size struct {
	// Name of the set, and the class of its machines.
	Name, Class string
	// New says that it is the set of the present template.
	New bool
	// Spec is the size it should have.
	Spec int32
	// Counts are its machines.
	Counts machineset.Counts
	// Phases are its machines by phase, those that are leaving as Terminating.
	Phases map[v1alpha1.MachinePhase]int
}

// A sizing is a size that was counted before. It holds for as long as the set and
// its machines stay the same and, if machines have to settle, for one instant.
type sizing struct {
	set     *v1alpha1.MachineSet
	changes int // of the table of its machines
	at      time.Time
	size    Size
}

// Sizes returns what the sets have, in the order in which they were created. What it
// returns for a set that has not changed is what it returned before, maps included:
// read it only.
func (w *World) Sizes() []Size {
	newSet, _ := deployment.FindSets(w.deployment, w.truth.sets.list())
	known := make(map[types.UID]sizing, len(w.sizings))
	var sizes []Size
	for _, s := range w.truth.sets.list() {
		if s == nil {
			continue
		}
		sized := w.sizeOf(s)
		sized.size.New = s == newSet
		known[s.UID] = sized
		sizes = append(sizes, sized.size)
	}
	w.sizings = known
	return sizes
}

func (w *World) sizeOf(s *v1alpha1.MachineSet) sizing {
	next := sizing{set: s, at: w.now}
	var machines []*v1alpha1.Machine
	if t := w.truth.owned[s.UID]; t != nil {
		next.changes, machines = t.changes, t.list()
	}
	before := w.sizings[s.UID]
	if before.set == s && before.changes == next.changes && (s.Spec.MinReadySeconds <= 0 || before.at.Equal(w.now)) {
		return before
	}
	next.size = Size{
		Name: s.Name, Class: s.Spec.Template.Spec.Class.Name, Spec: s.Spec.Replicas,
		Counts: machineset.Count(s, machines, nil, w.now), Phases: map[v1alpha1.MachinePhase]int{},
	}
	for _, m := range machines {
		switch {
		case m == nil:
		case machineset.Leaving(m):
			next.size.Phases[v1alpha1.MachineTerminating]++
		default:
			next.size.Phases[m.Status.CurrentStatus.Phase]++
		}
	}
	return next
}
