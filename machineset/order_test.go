// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/internal/decided"
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

// threeMachines returns any three machines, of which some have one name.
func threeMachines(r *rand.Rand) (machines [3]*v1alpha1.Machine) {
	for i := range machines {
		machines[i] = randomMachine(r, pick(r, "a", "b", "c"))
		if r.IntN(4) == 0 {
			machines[i].UID = "uid-other"
		}
		for j := range i { // of one name and UID there is one machine
			if machines[i].Name == machines[j].Name && machines[i].UID == machines[j].UID {
				machines[i] = machines[j]
			}
		}
	}
	return machines
}

func FuzzOrder_Total(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, uint64(1))
	f.Add([]byte{}, uint64(2))
	f.Add([]byte{13, 12, 11, 10, 9, 8, 7, 7}, uint64(3))
	f.Fuzz(func(t *testing.T, which []byte, seed uint64) {
		if len(which) <= 32 {
			requireTotal(t, orderOf(which), threeMachines(rand.New(rand.NewPCG(seed, 3))))
		}
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
		requireTotal(t, orderOf(which), threeMachines(r))
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
	var machines []*v1alpha1.Machine
	for _, text := range []string{
		"kept longest.keeps=7200", "kept.keeps=3600", "kept by the set.keeps=7200.preserve=auto-preserved", "dear.priority=5", "young.young",
		"b", "a", "pending.pending", "marked late.named=-1m", "marked.named=-1h", "cheap.priority=-1",
	} {
		machines = append(machines, machineFrom(text))
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

func TestNameVictims_Names_ReadBack(t *testing.T) {
	set := newSet(1)
	require.Equal(t, 2, members.NameVictims(set, []string{"b", "a", "b", "", " a", "c,d", strings.Repeat("x", 254)}))
	require.Equal(t, "b,a", set.Annotations[victimsAnnotation])
	require.Equal(t, []string{"b", "a"}, members.Victims(set))
	require.Zero(t, members.NameVictims(set, nil))
	require.NotContains(t, set.Annotations, victimsAnnotation)
	require.Zero(t, members.NameVictims(nil, []string{"a"}))
	require.Nil(t, members.Victims(nil))
	require.Nil(t, members.Victims(newSet(1)))
}

func TestNameVictims_InvalidNames_AreSkipped(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		",,, ,\t,":                        nil,
		" a , b,a ,, b":                   {"a", "b"},
		strings.Repeat("a,", 100_000):     {"a"},
		strings.Repeat("x", 200_000):      nil,
		"a\x00b":                          {"a\x00b"},
		strings.Repeat("y", 254) + ",a":   {"a"},
		"a;b|c":                           {"a;b|c"},
		"\xff\xfe":                        {"\xff\xfe"},
		strings.Repeat(" ", 1000) + "a\n": {"a"},
	} {
		require.Equal(t, want, members.Victims(annotated(1, text)))
	}
	// As many different names as the API server would store.
	var all strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&all, "%x,", i)
	}
	set := annotated(1, all.String())
	require.Len(t, members.Victims(set), 50_000)
	in := observed(1, newMachine("m", v1alpha1.MachineRunning), newMachine("n", v1alpha1.MachineRunning))
	in.Set.Annotations = set.Annotations
	require.Equal(t, []string{"m"}, decided.Deletes(machineset.Decide(in, machineset.Policy{}, now).Actions))
}

// TestNameVictims_ManyNames_FitTheAPIServer asserts the limit of the API server: 256 KiB for keys
// and values of all annotations.
func TestNameVictims_ManyNames_FitTheAPIServer(t *testing.T) {
	size := func(set *v1alpha1.MachineSet) int {
		n := 0
		for k, v := range set.Annotations {
			n += len(k) + len(v)
		}
		return n
	}
	var names []string
	for i := range 2000 {
		names = append(names, strings.Repeat("x", 249)+fmt.Sprintf("%04d", i))
	}
	for _, others := range []int{0, 100 << 10, 200 << 10, 256<<10 - 300, 256<<10 - 100, 300 << 10} {
		set := newSet(1)
		set.Annotations = map[string]string{"o": strings.Repeat("o", others)}
		n := members.NameVictims(set, names)
		require.LessOrEqual(t, n, members.MaxVictims)
		require.Equal(t, names[:n], append([]string{}, members.Victims(set)...))
		if n > 0 {
			require.LessOrEqual(t, size(set), 256<<10)
		}
		if others <= 100<<10 {
			require.Equal(t, members.MaxVictims, n)
		}
		if others >= 256<<10-100 {
			require.Zero(t, n)
			require.NotContains(t, set.Annotations, victimsAnnotation)
		}
	}
}

func TestChoose_TwoMachinesOfOneName_SameOne(t *testing.T) {
	a, b, c := newMachine("m", v1alpha1.MachineRunning), newMachine("m", v1alpha1.MachineRunning), newMachine("x", v1alpha1.MachineFailed)
	b.UID = "uid-a"
	set := annotated(1, "m")
	for _, machines := range [][]*v1alpha1.Machine{{a, b, c}, {c, b, a, nil}} {
		got := members.Choose(set, machines, 2, members.DeletionOrder(now))
		require.Equal(t, []machineset.Victim{{Machine: b, By: members.ByPlan}}, got)
	}
	require.Len(t, members.Choose(nil, []*v1alpha1.Machine{a, c}, -5, nil), 2)
}

// TestChoose_Random_AgreesWithModel asserts that those are chosen that an autoscaler named, then those that the
// set names, in that order, then the first of the order of deletion.
func TestChoose_Random_AgreesWithModel(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 6))
		set := newSet(3)
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: pick(r, at(0), "x")}
		var machines []*v1alpha1.Machine
		var names []string
		for i := range r.IntN(10) {
			m := randomMachine(r, fmt.Sprintf("m%d", i))
			machines = append(machines, m)
			if r.IntN(3) == 0 {
				names = append(names, m.Name)
			}
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		members.NameVictims(set, append(names, "absent"))
		keep := r.IntN(12) - 1
		victims := members.Choose(set, machines, keep, members.DeletionOrder(now))
		place, demanded := map[string]int{}, 0 // place of all others is 0
		for i, name := range names {
			place[name] = i - len(names)
		}
		for _, m := range machines {
			if members.NamedByAutoscaler(set, m) {
				place[m.Name] = -len(names) - 1
				demanded++
			}
		}
		slices.SortFunc(machines, func(a, b *v1alpha1.Machine) int {
			n, _ := members.DeletionOrder(now).Compare(a, b)
			return cmp.Or(cmp.Compare(place[a.Name], place[b.Name]), n)
		})
		var want []string
		for _, m := range machines[:max(demanded, len(machines)-max(0, keep))] {
			want = append(want, m.Name)
		}
		require.Equal(t, want, namesOf(victims), "seed %d", seed)
		for _, v := range victims {
			named := slices.Contains(names, v.Machine.Name)
			require.Equal(t, members.NamedByAutoscaler(set, v.Machine), v.By == members.ByDemand, "seed %d", seed)
			require.True(t, named || v.By != members.ByPlan, "seed %d", seed)
		}

		// The chosen machines are deleted, in any order and number; no other is chosen instead.
		gone := victims[:r.IntN(len(victims)+1)]
		left := slices.DeleteFunc(slices.Clone(machines), func(m *v1alpha1.Machine) bool { return slices.Contains(namesOf(gone), m.Name) })
		again := members.Choose(set, left, keep, members.DeletionOrder(now))
		require.Equal(t, namesOf(victims[len(gone):]), namesOf(again), "seed %d", seed)
	}
}

// TestChoose_HealthFlaps_SameVictims asserts that a set that shrinks by k deletes at most k
// machines, though their health changes between all passes, and the cache shows none of the
// deletions.
func TestChoose_HealthFlaps_SameVictims(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		in := observed(int32(r.IntN(5))) //nolint:gosec // small
		excess := 1 + r.IntN(5)
		for i := range int(in.Set.Spec.Replicas) + excess {
			in.Machines = append(in.Machines, newMachine(fmt.Sprintf("m%d", i), v1alpha1.MachineRunning))
		}
		asked := map[string]bool{}
		for pass := range 20 {
			for _, m := range in.Machines {
				m.Status.CurrentStatus.Phase = pick[v1alpha1.MachinePhase](r, "Running", "Unknown", "Pending", "InPlaceUpdating", "CrashLoopBackOff")
				m.Annotations[v1alpha1.MachinePriority] = pick(r, "1", "2", "3")
			}
			if r.IntN(3) == 0 {
				members.NameVictims(in.Set, []string{pick(r, in.Machines...).Name})
			}
			at := now.Add(time.Duration(pass) * time.Second)
			d := machineset.Decide(in, machineset.Policy{Burst: 1 + r.IntN(5)}, at)
			for _, name := range decided.Deletes(d.Actions) {
				asked[name] = true
			}
			in.Expectations = carryOut(in.Expectations, d, at)
		}
		require.Len(t, asked, excess, "seed %d", seed)
	}
}

func FuzzVictims(f *testing.F) {
	f.Add("a,b", "b", 1, 3)
	f.Add(" ,,m1 ,m0", "x,y", 0, 5)
	f.Add("m3\n,m3,\x00", "", -1, 4)
	f.Fuzz(func(t *testing.T, text, more string, keep, n int) {
		set := annotated(1, text)
		read := members.Victims(set)
		require.Equal(t, slices.Sorted(slices.Values(read)), slices.Compact(slices.Sorted(slices.Values(read))), "each once")
		written := members.NameVictims(set, read)
		require.Equal(t, read[:written], append(read[:0:0], members.Victims(set)...), "what is read is written as it was")
		members.NameVictims(set, strings.Split(more, ";"))

		var machines []*v1alpha1.Machine
		for i := range min(max(0, n), 20) {
			machines = append(machines, newMachine(fmt.Sprintf("m%d", i), v1alpha1.MachineRunning), nil)
		}
		eligible := len(machines) / 2
		victims := members.Choose(set, machines, keep, members.DeletionOrder(now))
		require.Len(t, victims, max(0, eligible-max(0, keep)))
		require.Len(t, slices.Compact(sorted(namesOf(victims))), len(victims), "one machine twice")
	})
}
