// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// collector runs the loop around Step and deletes the proposed VMs.
type collector struct {
	state   safety.State
	policy  safety.Policy
	now     time.Time
	last    safety.Decision[machinist.Action]
	deleted []time.Time // of VMs
}

func newCollector(state safety.State) *collector {
	return &collector{policy: safety.DefaultPolicy(), now: start, state: state}
}

// scan runs one pass, deletes VMs whose machine is not live, and returns the VMs that are left.
func (c *collector) scan(t testing.TB, vms []safety.VM, machines, live []*v1alpha1.Machine) []safety.VM {
	t.Helper()
	before, now := c.state, c.now
	in := world{vms: vms, machines: machines}.at(now)
	c.state, c.last = safety.Step(c.state, in, c.policy, now)
	c.now = c.last.NextCheck
	for _, action := range c.last.Actions {
		a, ok := action.(safety.DeleteVM)
		require.True(t, ok)
		checkAction(t, before, in, a, c.policy, now)
		if a.StillValid(named(live, a.MachineName)) {
			vms = slices.DeleteFunc(slices.Clone(vms), func(v safety.VM) bool { return v.ProviderID == a.ProviderID })
			c.deleted = append(c.deleted, now)
		}
	}
	return vms
}

// mostInADay returns the largest number of deletions within 24 hours.
func (c *collector) mostInADay() (most int) {
	for i, from := range c.deleted {
		n := 0
		for _, at := range c.deleted[i:] {
			if at.Sub(from) < 24*time.Hour {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// cut returns the machines that a scan still has after some hours.
type cut func(hours float64) []*v1alpha1.Machine

// cuts are the ways in which a list lacks machines.
var cuts = map[string]func(r *rand.Rand, all []*v1alpha1.Machine) cut{
	"one machine less at every scan": func(_ *rand.Rand, all []*v1alpha1.Machine) cut {
		scans := 0
		return func(float64) []*v1alpha1.Machine {
			scans++
			return all[min(scans, len(all)):]
		}
	},
	"one machine less at some time": func(r *rand.Rand, all []*v1alpha1.Machine) cut {
		perHour := r.Float64() * 4
		return func(hours float64) []*v1alpha1.Machine { return all[min(int(hours*perHour), len(all)):] }
	},
	"a page": func(r *rand.Rand, all []*v1alpha1.Machine) cut {
		return always(all[:r.IntN(len(all))])
	},
	"other ones at every scan": func(r *rand.Rand, all []*v1alpha1.Machine) cut {
		share := r.Float64()
		return func(float64) []*v1alpha1.Machine { return without(r, all, share) }
	},
	"some for good": func(r *rand.Rand, all []*v1alpha1.Machine) cut { return always(without(r, all, r.Float64()*0.4)) },
	"none at all":   func(*rand.Rand, []*v1alpha1.Machine) cut { return always(nil) },
}

func always(machines []*v1alpha1.Machine) cut {
	return func(float64) []*v1alpha1.Machine { return machines }
}

// without returns a list that lacks a share of the elements.
func without[T any](r *rand.Rand, all []T, share float64) []T {
	return slices.DeleteFunc(slices.Clone(all), func(T) bool { return r.Float64() < share })
}

// named returns the machine with a name, or nil.
func named(machines []*v1alpha1.Machine, name string) *v1alpha1.Machine {
	for _, m := range machines {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// TestStep_MachineListIsCut_DeletesAtMostTheShareOfADay cuts the list of machines in every
// way over three days. If the API server still returns the machine, nothing is deleted. If it
// does not, at most the share of a day is deleted, and nothing for a larger cut.
func TestStep_MachineListIsCut_DeletesAtMostTheShareOfADay(t *testing.T) {
	t.Parallel()
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total, spared := 0, 0
			for seed := range uint64(24) {
				r := rand.New(rand.NewPCG(seed, 3))
				w, c := pool(1+r.IntN(80)), newCollector(safety.State{})
				lostForGood := seed%2 == 0
				if seed%4 < 2 {
					c.state = old
				}
				bound := max(1, len(w.vms)*c.policy.MaxPercent/100)
				shown, vms, always := cut(r, w.machines), w.vms, true
				for c.now.Before(start.Add(72 * time.Hour)) {
					machines, live := shown(c.now.Sub(start).Hours()), w.machines
					always = always && len(w.machines)-len(machines) > bound
					if lostForGood {
						live = machines
					}
					vms = c.scan(t, vms, machines, live)
				}
				require.LessOrEqual(t, c.mostInADay(), bound, "seed %d: %d machines", seed, len(w.machines))
				if !lostForGood || always || name == "none at all" {
					require.Empty(t, c.deleted, "seed %d", seed)
					spared++
				}
				total += len(c.deleted)
			}
			require.Positive(t, spared)
			t.Logf("%d VMs deleted in 24 worlds over three days", total)
		})
	}
}

// TestStep_MachineListDecays_TheShareOfADayIsReached shows that the share stops the deletions.
func TestStep_MachineListDecays_TheShareOfADayIsReached(t *testing.T) {
	t.Parallel()
	w, c := pool(20), newCollector(old)
	for c.now.Before(start.Add(20 * time.Hour)) {
		w.vms = c.scan(t, w.vms, w.machines[int(c.now.Sub(start).Hours()):], nil)
	}
	require.Len(t, c.deleted, 4)
	require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(c.last))
	require.Contains(t, c.last.Holds[0].Message, "19 of 20 VMs have no machine, 4 of them deleted within 24h0m0s; at most 1 or 20.0 % is allowed")
}

// TestStep_YoungState_AllowsPartOfTheShare loses the state.
func TestStep_YoungState_AllowsPartOfTheShare(t *testing.T) {
	t.Parallel()
	for hours, want := range map[int]int{1: 0, 11: 0, 13: 2, 30: 2} {
		w, c, now := pool(18), newCollector(safety.State{}), start.Add(time.Duration(hours)*time.Hour)
		c.scan(t, w.vms, w.machines, nil)
		w.vms = append(w.vms, vm("lost-0"), vm("lost-1"))
		for _, c.now = range []time.Time{now, now.Add(11 * time.Minute)} {
			c.scan(t, w.vms, w.machines, nil)
		}
		require.Len(t, c.deleted, want, "after %d hours", hours)
		if want == 0 {
			require.Contains(t, c.last.String(), ", 20 % from 2026-03-02T12:00:00Z on")
		}
	}
}

// TestStep_SecondVMs_DoNotCountAsDeleted deletes second VMs of half of the machines, and then a lost VM.
func TestStep_SecondVMs_DoNotCountAsDeleted(t *testing.T) {
	t.Parallel()
	w, c := pool(10), newCollector(old)
	for i := range 5 {
		w.vms = append(w.vms, safety.VM{ProviderID: id(fmt.Sprint("second-", i)), MachineName: w.machines[i].Name})
	}
	for _, want := range []int{5, 6} {
		for range 4 {
			w.vms = c.scan(t, w.vms, w.machines, w.machines)
		}
		require.Len(t, c.deleted, want)
		w.vms = append(w.vms, vm("lost"))
	}
}

// listings are wrong listings without an error.
var listings = map[string]func(w world) []safety.VM{
	"nothing":                    func(world) []safety.VM { return nil },
	"half of them":               func(w world) []safety.VM { return w.vms[:len(w.vms)/2] },
	"one VM of another account":  func(world) []safety.VM { return []safety.VM{vm("foreign")} },
	"ten VMs of another account": func(world) []safety.VM { return foreign(10) },
	"half of them, and a VM of another account": func(w world) []safety.VM {
		return append(slices.Clone(w.vms[:len(w.vms)/2]), vm("foreign"))
	},
	"VMs of another account under our names": func(w world) (out []safety.VM) {
		for _, v := range w.vms {
			out = append(out, safety.VM{ProviderID: v.ProviderID + "-foreign", MachineName: v.MachineName})
		}
		return out
	},
}

func foreign(n int) (out []safety.VM) {
	for i := range n {
		out = append(out, vm(fmt.Sprint("foreign-", i)))
	}
	return out
}

// TestStep_WrongListingTenTimes_DeletesNothing repeats a wrong listing for hours.
func TestStep_WrongListingTenTimes_DeletesNothing(t *testing.T) {
	t.Parallel()
	for name, wrong := range listings {
		for _, n := range []int{1, 2, 10, 50} {
			w, c := pool(n), newCollector(old)
			for range 10 {
				c.scan(t, wrong(w), w.machines, nil)
				require.Empty(t, c.last.Actions, "%s, of %d machines", name, n)
			}
		}
	}
}

// TestStep_ListingLacksAllVMs_IsSuspicious uses a policy without a limit of the share.
func TestStep_ListingLacksAllVMs_IsSuspicious(t *testing.T) {
	t.Parallel()
	w, p := pool(10), safety.DefaultPolicy()
	w.vms, p.MaxPercent = foreign(10), 100
	d := twice(w.at(start), w.at(late), p)
	require.Empty(t, d.Actions)
	require.Equal(t, "the VMs of 10 of the 10 machines of the class are not listed", d.Holds[0].Message)
}

// TestStep_MachinesWithoutListedVM_CountIfTheyHaveAProviderID has an orphan and
// machines that have no VM yet or no longer.
func TestStep_MachinesWithoutListedVM_CountIfTheyHaveAProviderID(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *v1alpha1.Machine){
		"they are being deleted":     func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: start} },
		"they have no provider ID":   func(m *v1alpha1.Machine) { m.Spec.ProviderID = "" },
		"they are of another class":  func(m *v1alpha1.Machine) { m.Spec.Class.Name = "large" },
		"they are in another place":  func(m *v1alpha1.Machine) { m.Namespace = "b" },
		"they should have their VMs": func(*v1alpha1.Machine) {},
	} {
		w := pool(10)
		w.vms = append(w.vms[:7], vm("lost"))
		for _, m := range w.machines[7:] {
			change(m)
		}
		d := twice(w.at(start), w.at(late), safety.DefaultPolicy())
		if name == "they should have their VMs" {
			require.Contains(t, d.String(), "Suspicious: the VMs of 3 of the 10 machines of the class are not listed")
		} else {
			require.Equal(t, []string{"lost"}, names(d), "%s: %s", name, d)
		}
	}
}

// TestStep_DeletionsInNamespace_CountForEveryClass deletes VMs of two namespaces.
func TestStep_DeletionsInNamespace_CountForEveryClass(t *testing.T) {
	t.Parallel()
	w, c := pool(20), newCollector(old)
	w.vms = append(w.vms, vm("lost-0"), vm("lost-1"), vm("lost-2"), vm("lost-3"))
	for range 3 {
		w.vms = c.scan(t, w.vms, w.machines, nil)
	}
	require.Len(t, c.deleted, 4)
	for namespace, want := range map[string]int{"shoot": 0, "b": 2} {
		other := newWorld(vm("other-0"), vm("other-1"))
		for _, m := range other.machines {
			m.Namespace, m.Spec.Class.Name = namespace, "large"
		}
		state, deleted := c.state, 0
		for _, now := range []time.Time{c.now, c.now.Add(11 * time.Minute)} {
			in := other.at(now)
			in.Listings[0].Class = types.NamespacedName{Namespace: namespace, Name: "large"}
			var d safety.Decision[machinist.Action]
			state, d = safety.Step(state, in, c.policy, now)
			deleted += len(d.Actions)
		}
		require.Equal(t, want, deleted, "namespace %s", namespace)
	}
}
