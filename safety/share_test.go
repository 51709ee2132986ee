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

// scan runs one pass, deletes VMs whose machine does not exist by live, and returns the VMs
// that are left.
func (c *collector) scan(t testing.TB, vms []safety.VM, machines []*v1alpha1.Machine, live func(name string) *v1alpha1.Machine) []safety.VM {
	t.Helper()
	before := c.state
	in := world{vms: vms, machines: machines}.at(c.now)
	c.state, c.last = safety.Step(c.state, in, c.policy, c.now)
	for _, action := range c.last.Actions {
		a, ok := action.(safety.DeleteVM)
		require.True(t, ok)
		checkAction(t, before, in, a, c.policy, c.now)
		if a.StillValid(live(a.MachineName)) {
			vms = slices.DeleteFunc(slices.Clone(vms), func(v safety.VM) bool { return v.ProviderID == a.ProviderID })
			c.deleted = append(c.deleted, c.now)
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

// cuts are the ways in which a list lacks machines. Each returns the machines that a scan still
// has.
var cuts = map[string]func(r *rand.Rand, all []*v1alpha1.Machine) func(hours float64) []*v1alpha1.Machine{
	"one machine less at every scan": func(_ *rand.Rand, all []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		scans := 0
		return func(float64) []*v1alpha1.Machine { scans++; return all[min(scans, len(all)):] }
	},
	"one machine less at some time": func(r *rand.Rand, all []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		perHour := r.Float64() * 4
		return func(hours float64) []*v1alpha1.Machine { return all[min(int(hours*perHour), len(all)):] }
	},
	"a page": func(r *rand.Rand, all []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		page := all[:r.IntN(len(all))]
		return func(float64) []*v1alpha1.Machine { return page }
	},
	"other ones at every scan": func(r *rand.Rand, all []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		share := r.Float64()
		return func(float64) []*v1alpha1.Machine {
			return slices.DeleteFunc(slices.Clone(all), func(*v1alpha1.Machine) bool { return r.Float64() < share })
		}
	},
	"some for good": func(r *rand.Rand, all []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		share := r.Float64() * 0.4
		left := slices.DeleteFunc(slices.Clone(all), func(*v1alpha1.Machine) bool { return r.Float64() < share })
		return func(float64) []*v1alpha1.Machine { return left }
	},
	"none at all": func(*rand.Rand, []*v1alpha1.Machine) func(float64) []*v1alpha1.Machine {
		return func(float64) []*v1alpha1.Machine { return nil }
	},
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
				w := pool(1 + r.IntN(80))
				lostForGood := seed%2 == 0
				c := &collector{policy: safety.DefaultPolicy(), now: start}
				if seed%4 < 2 {
					c.state = old
				}
				bound := max(1, len(w.vms)*c.policy.MaxPercent/100)
				shown, vms, always := cut(r, w.machines), w.vms, true
				for c.now.Before(start.Add(72 * time.Hour)) {
					machines := shown(c.now.Sub(start).Hours())
					always = always && len(w.machines)-len(machines) > bound
					vms = c.scan(t, vms, machines, func(name string) *v1alpha1.Machine {
						all := w.machines
						if lostForGood {
							all = machines
						}
						i := slices.IndexFunc(all, func(m *v1alpha1.Machine) bool { return m.Name == name })
						if i < 0 {
							return nil
						}
						return all[i]
					})
					c.now = c.last.NextCheck
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
	w := pool(20)
	c := &collector{policy: safety.DefaultPolicy(), now: start, state: old}
	vms := w.vms
	for c.now.Before(start.Add(20 * time.Hour)) {
		lost := int(c.now.Sub(start).Hours())
		vms = c.scan(t, vms, w.machines[lost:], func(string) *v1alpha1.Machine { return nil })
		c.now = c.last.NextCheck
	}
	require.Len(t, c.deleted, 4)
	require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(c.last))
	require.Contains(t, c.last.Holds[0].Message, "19 of 20 VMs have no machine, 4 of them deleted within 24h0m0s; at most 1 or 20.0 % is allowed")
}

// TestStep_YoungState_AllowsPartOfTheShare loses the state.
func TestStep_YoungState_AllowsPartOfTheShare(t *testing.T) {
	t.Parallel()
	w := pool(18)
	w.vms = append(w.vms, vm("lost-0"), vm("lost-1"))
	for hours, want := range map[int]int{1: 0, 11: 0, 13: 2, 30: 2} {
		now := start.Add(time.Duration(hours) * time.Hour)
		c := &collector{policy: safety.DefaultPolicy(), now: start}
		c.scan(t, pool(18).vms, w.machines, nil)
		for _, c.now = range []time.Time{now, now.Add(11 * time.Minute)} {
			c.scan(t, w.vms, w.machines, func(string) *v1alpha1.Machine { return nil })
		}
		require.Len(t, c.deleted, want, "after %d hours", hours)
		if want == 0 {
			require.Contains(t, c.last.String(), ", 20 % from 2026-03-02T12:00:00Z on")
		}
	}
}

// TestStep_SecondVMs_DoNotCountAsDeleted deletes second VMs of half of the machines.
func TestStep_SecondVMs_DoNotCountAsDeleted(t *testing.T) {
	t.Parallel()
	w := pool(10)
	for i := range 5 {
		w.vms = append(w.vms, safety.VM{ProviderID: id(fmt.Sprint("second-", i)), MachineName: w.machines[i].Name})
	}
	c := &collector{policy: safety.DefaultPolicy(), now: start, state: old}
	owner := func(name string) *v1alpha1.Machine {
		if i := slices.IndexFunc(w.machines, func(m *v1alpha1.Machine) bool { return m.Name == name }); i >= 0 {
			return w.machines[i]
		}
		return nil
	}
	for range 4 {
		w.vms = c.scan(t, w.vms, w.machines, owner)
		c.now = c.last.NextCheck
	}
	require.Len(t, c.deleted, 5)
	w.vms = append(w.vms, vm("lost"))
	for range 4 {
		w.vms = c.scan(t, w.vms, w.machines, owner)
		c.now = c.last.NextCheck
	}
	require.Len(t, c.deleted, 6)
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
			w := pool(n)
			c := &collector{policy: safety.DefaultPolicy(), now: start, state: old}
			for range 10 {
				c.scan(t, wrong(w), w.machines, func(string) *v1alpha1.Machine { return nil })
				require.Empty(t, c.last.Actions, "%s, of %d machines", name, n)
				c.now = c.last.NextCheck
			}
		}
	}
}

// TestStep_ListingLacksAllVMs_IsSuspicious uses a policy without a limit
// of the share.
func TestStep_ListingLacksAllVMs_IsSuspicious(t *testing.T) {
	t.Parallel()
	w := pool(10)
	w.vms = foreign(10)
	p := safety.DefaultPolicy()
	p.MaxPercent = 100
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
		"they should have their VMs": nil,
	} {
		w := pool(10)
		w.vms = append(slices.Clone(w.vms[:7]), vm("lost"))
		if change != nil {
			for _, m := range w.machines[7:] {
				change(m)
			}
		}
		d := twice(w.at(start), w.at(late), safety.DefaultPolicy())
		if change != nil {
			require.Equal(t, []string{"lost"}, names(d), "%s: %s", name, d)
			continue
		}
		require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(d), name)
		require.Equal(t, "the VMs of 3 of the 10 machines of the class are not listed", d.Holds[0].Message)
	}
}

// TestStep_DeletionsInNamespace_CountForEveryClass deletes VMs of two namespaces.
func TestStep_DeletionsInNamespace_CountForEveryClass(t *testing.T) {
	t.Parallel()
	w := pool(20)
	w.vms = append(w.vms, vm("lost-0"), vm("lost-1"), vm("lost-2"), vm("lost-3"))
	c := &collector{policy: safety.DefaultPolicy(), now: start, state: old}
	for range 3 {
		w.vms = c.scan(t, w.vms, w.machines, func(string) *v1alpha1.Machine { return nil })
		c.now = c.last.NextCheck
	}
	require.Len(t, c.deleted, 4)
	for namespace, want := range map[string]int{"shoot": 0, "b": 2} {
		other := pool(10)
		other.vms = append(other.vms, vm("other-0"), vm("other-1"))
		for _, m := range other.machines {
			m.Namespace, m.Spec.Class.Name = namespace, "large"
		}
		at := func(now time.Time) safety.Observation {
			in := other.at(now)
			in.Listings[0].Class.Namespace, in.Listings[0].Class.Name = namespace, "large"
			return in
		}
		s, _ := safety.Step(c.state, at(c.now), c.policy, c.now)
		_, d := safety.Step(s, at(c.now.Add(11*time.Minute)), c.policy, c.now.Add(11*time.Minute))
		require.Len(t, d.Actions, want, "namespace %s: %s", namespace, d)
	}
}
