// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Size has the numbers of machines of a set.
type Size struct {
	// Name is the name of the set, and Class the class of its machines.
	Name, Class string
	// New means that it is the set of the current template.
	New bool
	// Spec is the desired number of machines.
	Spec int32
	// Counts are the numbers of its machines.
	Counts members.Counts
	// Phases are the numbers of its machines by phase. Deleted machines count as Terminating.
	Phases map[v1alpha1.MachinePhase]int
}

// A sizing is a counted size. It is valid until the set or its machines change, and for one instant
// if machines have to become available.
type sizing struct {
	set     *v1alpha1.MachineSet
	changes int // of the table of its machines
	at      time.Time
	size    Size
}

// Sizes returns the sizes of the sets in the order of their creation. The result is read-only:
// unchanged sets share their maps between calls.
func (w *World) Sizes() []Size {
	newSet, _ := rollout.FindSets(w.deployment, w.truth.sets.list())
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
		Counts: members.Count(s, machines, nil, w.now), Phases: map[v1alpha1.MachinePhase]int{},
	}
	for _, m := range machines {
		switch {
		case m == nil:
		case members.Leaving(m):
			next.size.Phases[v1alpha1.MachineTerminating]++
		default:
			next.size.Phases[m.Status.CurrentStatus.Phase]++
		}
	}
	return next
}
