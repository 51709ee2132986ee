// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// CompareForDeletion returns the order in which the machines of a set are
// deleted at the instant now: negative if a goes before b. The criteria are, in
// this order:
//
//  1. machines that are not preserved at now, then those that are;
//  2. of two preserved ones, that which the set preserved of its own accord,
//     then that which a user asked for;
//  3. of two such, the earlier end of the preservation;
//  4. the lower priority annotation ([PriorityOf]);
//  5. machines with a readable mark of an autoscaler, then those without;
//  6. of two marked ones, the earlier mark;
//  7. the lower [Weight];
//  8. the older creation timestamp;
//  9. the name;
//  10. the UID.
//
// The order is total, so equal machines are the same machine. Criteria 1 to 8
// are those of the reference system, which leaves ties to chance. A nil machine
// comes last.
func CompareForDeletion(now time.Time) func(a, b *v1alpha1.Machine) int {
	return func(a, b *v1alpha1.Machine) int { return rankOf(a, now).compare(rankOf(b, now)) }
}

// FirstToGo returns the k machines that [CompareForDeletion] puts first, in its
// order, in a slice of its own. Negative k means none; nil machines are left
// out; no machine is refused for being on its way out, so leave those out
// beforehand. The time is O(n log n).
func FirstToGo(machines []*v1alpha1.Machine, k int, now time.Time) []*v1alpha1.Machine {
	if k <= 0 {
		return nil
	}
	ranks := make([]rankedMachine, 0, len(machines))
	for _, m := range machines {
		if m != nil {
			ranks = append(ranks, rankOf(m, now))
		}
	}
	slices.SortFunc(ranks, rankedMachine.compare)
	first := make([]*v1alpha1.Machine, 0, min(k, len(ranks)))
	for _, r := range ranks[:min(k, len(ranks))] {
		first = append(first, r.machine)
	}
	return first
}

// Weight orders phases by how little is lost when a machine goes, from 0.
//
//	0  Terminating, and any phase with a deletion timestamp
//	1  Failed
//	2  InPlaceUpdateFailed: drained, and of use to nobody
//	3  CrashLoopBackOff
//	4  Unknown
//	5  the empty phase: not processed yet
//	6  Pending
//	7  InPlaceUpdating
//	8  Available
//	9  Running, InPlaceUpdateSuccessful, and phases unknown to this package
//
// The reference system gives weight 0 to the empty phase and to all phases of an
// in-place update, and so deletes freshly updated machines before Failed ones.
// Its order of the other phases is kept. A nil machine weighs 9.
func Weight(m *v1alpha1.Machine) int {
	const heaviest = 9
	if m == nil {
		return heaviest
	}
	if Leaving(m) {
		return 0
	}
	switch m.Status.CurrentStatus.Phase {
	case v1alpha1.MachineFailed:
		return 1
	case v1alpha1.MachineInPlaceUpdateFailed:
		return 2
	case v1alpha1.MachineCrashLoopBackOff:
		return 3
	case v1alpha1.MachineUnknown:
		return 4
	case "":
		return 5
	case v1alpha1.MachinePending:
		return 6
	case v1alpha1.MachineInPlaceUpdating:
		return 7
	case v1alpha1.MachineAvailable:
		return 8
	default:
		return heaviest
	}
}

// PriorityOf returns the priority annotation of a machine: lower goes first, and
// negative numbers are allowed. Missing, empty and unreadable annotations mean
// [v1alpha1.DefaultMachinePriority], as a nil machine does.
func PriorityOf(m *v1alpha1.Machine) int {
	if m == nil {
		return v1alpha1.DefaultMachinePriority
	}
	text, found := m.Annotations[v1alpha1.MachinePriority]
	if !found {
		return v1alpha1.DefaultMachinePriority
	}
	priority, err := strconv.Atoi(text)
	if err != nil {
		return v1alpha1.DefaultMachinePriority
	}
	return priority
}

// rankedMachine holds what the order looks at, so that annotations are parsed
// once per machine and not once per comparison.
type rankedMachine struct {
	machine       *v1alpha1.Machine
	preserved     bool
	byUser        bool
	preservedTill time.Time
	priority      int
	unmarked      bool
	marked        time.Time
	weight        int
	created       time.Time
	name          string
	uid           types.UID
}

func rankOf(m *v1alpha1.Machine, now time.Time) rankedMachine {
	if m == nil {
		return rankedMachine{}
	}
	r := rankedMachine{
		machine: m, priority: PriorityOf(m), weight: Weight(m),
		created: m.CreationTimestamp.Time, name: m.Name, uid: m.UID,
	}
	if Preserved(m, now) {
		r.preserved, r.byUser = true, !AutoPreserved(m)
		r.preservedTill = m.Status.CurrentStatus.PreserveExpiryTime.Time
	}
	marked, ok := MarkedAt(m)
	r.marked, r.unmarked = marked, !ok
	return r
}

func (r rankedMachine) compare(o rankedMachine) int {
	return cmp.Or(
		compareBool(r.machine == nil, o.machine == nil),
		compareBool(r.preserved, o.preserved),
		compareBool(r.byUser, o.byUser),
		r.preservedTill.Compare(o.preservedTill),
		cmp.Compare(r.priority, o.priority),
		compareBool(r.unmarked, o.unmarked),
		r.marked.Compare(o.marked),
		cmp.Compare(r.weight, o.weight),
		r.created.Compare(o.created),
		strings.Compare(r.name, o.name),
		cmp.Compare(r.uid, o.uid),
	)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
