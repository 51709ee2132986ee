// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Criterion is one rule of an [Order].
type Criterion struct {
	// Name is the stable CamelCase name in [Victim].By.
	Name string
	// Rank returns the rank of a machine: machines with lower ranks are deleted earlier. It is a
	// pure function and is not called with nil. A nil Rank gives all machines the same rank.
	Rank func(m *v1alpha1.Machine) int64
}

func (c Criterion) rank(m *v1alpha1.Machine) int64 {
	if c.Rank == nil {
		return 0
	}
	return c.Rank(m)
}

// ByHealth is the criterion of [DeletionOrder] for the phase of a machine.
const ByHealth = "Health"

// byName is the last criterion of every order.
const byName = "Name"

// Order is a list of criteria. The first one that ranks two machines differently decides, then
// their names, then their UIDs. So every Order is total. The nil Order is by name.
type Order []Criterion

// DeletionOrder returns the order in which a set deletes machines at now: preserved machines last,
// of them those preserved by a user after those preserved by a set, and those whose preservation
// expires later after others; then by lowest priority, earliest mark of an autoscaler, lowest
// rank of the phase, and greatest age. MCM has other ranks of phases, and does not compare names.
func DeletionOrder(now time.Time) Order {
	return Order{
		{"Preservation", func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now)) }},
		{"Preserver", func(m *v1alpha1.Machine) int64 { return last(Preserved(m, now) && !AutoPreserved(m)) }},
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
		{ByHealth, func(m *v1alpha1.Machine) int64 { return int64(facts.Rank(m)) }},
		{"Age", func(m *v1alpha1.Machine) int64 { return m.CreationTimestamp.UnixMicro() }},
	}
}

// priorityOf returns the priority annotation of a machine, or the default if it is missing or
// unreadable. It may be negative.
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

// Victim is a machine that is chosen for deletion.
type Victim struct {
	// Machine is the machine.
	Machine *v1alpha1.Machine
	// By is the criterion that ranks it before the first machine that stays: a name of an [Order],
	// "Name", [ByDemand] or [ByPlan]. It is empty if no machine stays.
	By string
}

// Compare returns a negative number if a is deleted before b, a positive one if b is deleted before
// a, 0 if they are the same, and the name of the criterion that decides. Nil machines are last.
func (o Order) Compare(a, b *v1alpha1.Machine) (int, string) {
	if a == nil || b == nil {
		return int(last(a == nil) - last(b == nil)), byName
	}
	for _, c := range o {
		if n := cmp.Compare(c.rank(a), c.rank(b)); n != 0 {
			return n, c.Name
		}
	}
	return CompareNames(a, b), byName
}

// First returns the k machines that are deleted first, in that order. It calls each criterion once
// per machine. Nil machines are skipped. It returns nil if k is below 1.
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

// table has the ranks of machines.
type table struct {
	order   Order
	ranks   []int64 // of all rows, one after the other
	telling []int   // the criteria by which ranks differ
	rows    []row
}

// row has what most comparisons need.
type row struct {
	machine *v1alpha1.Machine
	name    string
	first   int64 // the rank by the first criterion in telling
	at      int   // the index of its first rank
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

// compare is [Order.Compare] for two rows.
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

// CompareNames compares machines by name, then by UID.
func CompareNames(a, b *v1alpha1.Machine) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
