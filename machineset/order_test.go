// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// criteria are those of the deletion order, one that a caller made, and one that is empty.
func criteria() []members.Criterion {
	return append(members.DeletionOrder(now),
		members.Criterion{Name: "Length", Rank: func(m *v1alpha1.Machine) int64 { return int64(len(m.Annotations)) }},
		members.Criterion{Name: "Nothing"},
	)
}

// orderOf composes an order by the numbers of its criteria.
func orderOf(which []byte) machineset.Order {
	all, o := criteria(), machineset.Order(nil)
	for _, n := range which {
		o = append(o, all[int(n)%len(all)])
	}
	return o
}

// requireTotal asserts the laws of an order on three machines.
func requireTotal(t *testing.T, o machineset.Order, machines [3]*v1alpha1.Machine) {
	t.Helper()
	sign := func(a, b *v1alpha1.Machine) int {
		n, by := o.Compare(a, b)
		if n != 0 {
			require.NotEmpty(t, by)
		}
		return max(-1, min(1, n))
	}
	for _, a := range machines {
		require.Zero(t, sign(a, a))
		require.Negative(t, sign(a, nil))
		require.Positive(t, sign(nil, a))
		for _, b := range machines {
			require.Equal(t, sign(a, b), -sign(b, a), "antisymmetric")
			require.Equal(t, a.Name == b.Name && a.UID == b.UID, sign(a, b) == 0, "total")
			for _, c := range machines {
				if sign(a, b) < 0 && sign(b, c) < 0 {
					require.Negative(t, sign(a, c), "transitive")
				}
			}
		}
	}
	first := o.First(machines[:], 3)
	require.True(t, slices.IsSortedFunc(first, func(a, b machineset.Victim) int { return sign(a.Machine, b.Machine) }))
	require.Equal(t, first[0].Machine, o.First(machines[:], 1)[0].Machine)
}

func FuzzOrder_Total(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, uint64(1))
	f.Add([]byte{}, uint64(2))
	f.Add([]byte{13, 12, 11, 10, 9, 8, 7, 7}, uint64(3))
	f.Fuzz(func(t *testing.T, which []byte, seed uint64) {
		if len(which) > 32 {
			return
		}
		r := rand.New(rand.NewPCG(seed, 3))
		var machines [3]*v1alpha1.Machine
		for i := range machines {
			machines[i] = randomMachine(r, pick(r, "a", "b", "c"))
			if r.IntN(4) == 0 {
				machines[i].UID = "uid-other"
			}
		}
		for i := range machines { // of one name and UID there is one machine
			for j := range i {
				if machines[i].Name == machines[j].Name && machines[i].UID == machines[j].UID {
					machines[i] = machines[j]
				}
			}
		}
		requireTotal(t, orderOf(which), machines)
	})
}

func TestOrder_Random_IsTotal(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		which := make([]byte, r.IntN(8))
		for i := range which {
			which[i] = byte(r.IntN(256))
		}
		if seed%2 == 0 {
			which = []byte{0, 1, 2, 3, 4, 5, 6}
		}
		a, b := randomMachine(r, pick(r, "a", "b")), randomMachine(r, pick(r, "a", "b"))
		b.UID = "uid-other"
		requireTotal(t, orderOf(which), [3]*v1alpha1.Machine{a, b, randomMachine(r, "c")})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	o := members.DeletionOrder(now)
	n, _ := o.Compare(nil, nil)
	require.Zero(t, n)
	require.Empty(t, o.First([]*v1alpha1.Machine{nil}, 5))
	require.Empty(t, o.First(nil, -1))
}

// TestFirst_Victim_SaysCriterion has a line for each machine above the replicas, with the criterion
// that chose it.
func TestFirst_Victim_SaysCriterion(t *testing.T) {
	machine := func(name string, bend func(m *v1alpha1.Machine)) *v1alpha1.Machine {
		m := newMachine(name, v1alpha1.MachineRunning)
		bend(m)
		return m
	}
	expires := func(m *v1alpha1.Machine, seconds int) { m.Status.CurrentStatus.PreserveExpiryTime = expiry(&seconds) }
	machines := []*v1alpha1.Machine{
		machine("kept longest", func(m *v1alpha1.Machine) { expires(m, 7200) }),
		machine("kept", func(m *v1alpha1.Machine) { expires(m, 3600) }),
		machine("kept by the set", func(m *v1alpha1.Machine) {
			expires(m, 7200)
			m.Annotations[v1alpha1.PreserveMachineAnnotationKey] = v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
		}),
		machine("dear", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.MachinePriority] = "5" }),
		machine("young", func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now) }),
		machine("b", func(*v1alpha1.Machine) {}),
		machine("a", func(*v1alpha1.Machine) {}),
		machine("pending", func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachinePending }),
		machine("marked late", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.MarkedForDeletionTime] = at(-time.Minute) }),
		machine("marked", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.MarkedForDeletionTime] = at(-time.Hour) }),
		machine("cheap", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.MachinePriority] = "-1" }),
	}
	var text []string
	for k := 1; k <= len(machines); k++ {
		v := members.DeletionOrder(now).First(machines, k)[k-1]
		text = append(text, fmt.Sprintf("%s by %s", v.Machine.Name, v.By))
	}
	require.Equal(t, []string{
		"cheap by Priority", "marked by Mark", "marked late by Mark", "pending by Health", "a by Name", "b by Age", "young by Priority",
		"dear by Preservation", "kept by the set by Preserver", "kept by PreservationEnd", "kept longest by ",
	}, text)

	in := observed(6, machines...)
	in.Set.Spec.AutoPreserveFailedMachineMax = 1
	d := machineset.Decide(in, machineset.Policy{}, now)
	require.Equal(t, "delete machine cheap: TooManyMachines: chosen by Priority; delete machine marked: TooManyMachines: chosen by Mark; "+
		"delete machine marked late: TooManyMachines: chosen by Mark; delete machine pending: TooManyMachines: chosen by Health; "+
		"delete machine a: TooManyMachines: chosen by Name (TooManyMachines)", d.String())
}
