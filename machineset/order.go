// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Criterion is one question by which machines are put into the order in which
// they are deleted.
type Criterion struct {
	// Name is what a plan says when the criterion decided: a stable CamelCase word.
	Name string
	// Rank answers it: the lower, the earlier the machine goes. It has to be a
	// pure function, and is not called with nil. If it is nil itself, the criterion
	// tells no machines apart.
	Rank func(m *v1alpha1.Machine) int64
}

func (c Criterion) rank(m *v1alpha1.Machine) int64 {
	if c.Rank == nil {
		return 0
	}
	return c.Rank(m)
}

// byName is the criterion that decides when no other does.
const byName = "Name"

// An Order is the list of criteria that are asked one after the other until one
// tells two machines apart. If none does, the name and then the UID decide, so
// that every Order is total. The nil Order is that of names.
type Order []Criterion

// DeletionOrder is the order in which a set deletes its machines. These go last: those
// that are preserved at the instant now, of them those that a person preserves, and
// those whose preservation ends last. Then the lowest priority goes first, then the
// earliest mark of an autoscaler, then the lowest [machine.PhaseRank], then the oldest.
// It is that of the reference system except for the ranks of phases and the names at
// the end.
func DeletionOrder(now time.Time) Order {
	return Order{
		{"Preservation", func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now)) }},
		{"Preserver", func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now) && !autoPreserved(m)) }},
		{"PreservationEnd", func(m *v1alpha1.Machine) int64 {
			if !Preserved(m, now) {
				return 0
			}
			return m.Status.CurrentStatus.PreserveExpiryTime.UnixMicro()
		}},
		{"Priority", priorityOf},
		{"Mark", func(m *v1alpha1.Machine) int64 {
			if at, ok := MarkedAt(m); ok {
				return at.Unix()
			}
			return math.MaxInt64
		}},
		{"Health", func(m *v1alpha1.Machine) int64 { return int64(machine.PhaseRank(m)) }},
		{"Age", func(m *v1alpha1.Machine) int64 { return m.CreationTimestamp.UnixMicro() }},
	}
}

// priorityOf returns the priority annotation of a machine, or the default if it is
// missing or unreadable. Negative numbers are allowed.
func priorityOf(m *v1alpha1.Machine) int64 {
	if text, found := m.Annotations[v1alpha1.MachinePriority]; found {
		if priority, err := strconv.Atoi(text); err == nil {
			return int64(priority)
		}
	}
	return v1alpha1.DefaultMachinePriority
}

func last(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// A Victim is a machine that was chosen to be deleted.
type Victim struct {
	// Machine that is deleted.
	Machine *v1alpha1.Machine
	// By names the criterion that told it from the first machine that stays: one of
	// an [Order], "Name", or one of [ByDemand] and [ByPlan]. It is empty if none
	// stays.
	By string
}

// Compare reports which of two machines is deleted first: a negative number for a, a
// positive one for b, and 0 if they are the same; and the name of the criterion
// that decided. Nil machines go last.
func (o Order) Compare(a, b *v1alpha1.Machine) (int, string) {
	if a == nil || b == nil {
		return int(last(a == nil) - last(b == nil)), byName
	}
	for _, c := range o {
		if n := cmp.Compare(c.rank(a), c.rank(b)); n != 0 {
			return n, c.Name
		}
	}
	return compareNames(a, b), byName
}

// First returns the k machines that are deleted first, in that order. It asks each
// criterion once for each machine. Nil machines are left out; a k below 0 counts
// as 0. It takes time n log n and memory n for n machines.
func (o Order) First(machines []*v1alpha1.Machine, k int) []Victim {
	if k <= 0 {
		return nil
	}
	t := o.ask(machines)
	slices.SortFunc(t.rows, func(a, b row) int { n, _ := t.compare(&a, &b); return n })
	k = min(k, len(t.rows))
	victims := make([]Victim, 0, k)
	for _, r := range t.rows[:k] {
		v := Victim{Machine: r.machine}
		if k < len(t.rows) {
			_, v.By = t.compare(&r, &t.rows[k])
		}
		victims = append(victims, v)
	}
	return victims
}

// A table holds the ranks of machines.
type table struct {
	order   Order
	ranks   []int64 // of all rows, one after the other
	telling []int   // the criteria to which the answers differ
	rows    []row
}

// row keeps at hand what most comparisons need.
type row struct {
	machine *v1alpha1.Machine
	name    string
	first   int64 // the answer to the first criterion that tells
	at      int   // where the answers are
}

func (o Order) ask(machines []*v1alpha1.Machine) table {
	t := table{order: o, rows: make([]row, 0, len(machines)), ranks: make([]int64, 0, len(machines)*len(o))}
	for _, m := range machines {
		if m == nil {
			continue
		}
		t.rows = append(t.rows, row{machine: m, name: m.Name, at: len(t.ranks)})
		for _, c := range o {
			t.ranks = append(t.ranks, c.rank(m))
		}
	}
	for i := range o {
		if slices.ContainsFunc(t.rows, func(r row) bool { return t.ranks[r.at+i] != t.ranks[i] }) {
			t.telling = append(t.telling, i)
		}
	}
	if len(t.telling) > 0 {
		for i := range t.rows {
			t.rows[i].first = t.ranks[t.rows[i].at+t.telling[0]]
		}
	}
	return t
}

// compare is what [Order.Compare] says of two rows.
func (t *table) compare(a, b *row) (int, string) {
	if n := cmp.Compare(a.first, b.first); n != 0 {
		return n, t.order[t.telling[0]].Name
	}
	for _, i := range t.telling[min(1, len(t.telling)):] {
		if n := cmp.Compare(t.ranks[a.at+i], t.ranks[b.at+i]); n != 0 {
			return n, t.order[i].Name
		}
	}
	if n := strings.Compare(a.name, b.name); n != 0 {
		return n, byName
	}
	return cmp.Compare(a.machine.UID, b.machine.UID), byName
}

func compareNames(a, b *v1alpha1.Machine) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
