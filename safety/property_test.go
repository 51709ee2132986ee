// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/safety"
)

// randomObservation returns an observation with few names, so that names collide.
func randomObservation(r *rand.Rand, now time.Time) safety.Observation {
	ids := []string{"c:///z/1", "c:///z/2", "c:///z/3", "c:///y/1", "C:////z/4/", "c:///z/4", "c:///z/5", "c:///z/6", ""}
	vmNames := []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", ""}
	when := func() time.Time {
		if r.IntN(20) == 0 {
			return now.Add(time.Duration(r.IntN(20)-18) * time.Minute)
		}
		return now
	}
	in := safety.Observation{Namespace: safety.AllNamespaces}
	if r.IntN(20) == 0 {
		in.Namespace = oneOf(r, "a", "b", "")
	}
	in.Machines = drain.List[*v1alpha1.Machine]{AsOf: when(), Complete: r.IntN(20) > 0}
	for range r.IntN(5) {
		in.Machines.Items = append(in.Machines.Items, machine(oneOf(r, "a", "b"), oneOf(r, vmNames[:3]...), oneOf(r, ids...)))
	}
	if r.IntN(30) == 0 {
		in.Machines.Items = append(in.Machines.Items, nil)
	}
	for range r.IntN(4) {
		class := types.NamespacedName{Namespace: oneOf(r, "a", "b"), Name: oneOf(r, "x", "y")}
		l := safety.Listing{Class: class, Unsupported: r.IntN(40) == 0, VMs: drain.List[safety.VM]{AsOf: when(), Complete: r.IntN(10) > 0}}
		for i := range ids {
			switch {
			case r.IntN(20) == 0:
				l.VMs.Items = append(l.VMs.Items, safety.VM{ProviderID: oneOf(r, ids...), MachineName: oneOf(r, vmNames...)})
			case r.IntN(20) > 0 && i < 8:
				l.VMs.Items = append(l.VMs.Items, safety.VM{ProviderID: ids[i], MachineName: vmNames[i]})
			}
		}
		if r.IntN(3) > 0 {
			l.DeletesSideResources = r.IntN(5) > 0
			l.SideResources = drain.List[driver.SideResource]{AsOf: when(), Complete: r.IntN(10) > 0}
			if r.IntN(6) > 0 {
				l.SideResources.Items = append(l.SideResources.Items, driver.SideResource{Kind: "disk", ID: "1", MachineName: "s1"})
			}
			for range max(0, r.IntN(5)-2) {
				l.SideResources.Items = append(l.SideResources.Items, driver.SideResource{
					Kind: oneOf(r, "disk", "nic", "nic", ""), ID: oneOf(r, "1", "2", "2", "c:///z/1"),
					MachineName: oneOf(r, "s1", "s1", "s2", "m1", ""), ProviderID: oneOf(r, "", "", "", "c:///q/1", "c:///z/1"),
				})
			}
		}
		in.Listings = append(in.Listings, l)
		if len(l.VMs.Items)%4 > 0 || len(in.Classes) == 0 {
			in.Classes = append(in.Classes, l.Class)
		}
	}
	in.Nodes = drain.List[*corev1.Node]{AsOf: when(), Complete: r.IntN(4) > 0}
	for i := range r.IntN(4) {
		in.Nodes.Items = append(in.Nodes.Items, newNode(fmt.Sprint("n", i), oneOf(r, ids...), time.Time{}))
	}
	return in
}

func randomPolicy(r *rand.Rand) safety.Policy {
	return safety.Policy{
		Grace: time.Duration(r.IntN(12)) * time.Minute, Period: time.Duration(r.IntN(20)) * time.Minute,
		MaxDeletions: r.IntN(4), MaxPercent: 30 * r.IntN(5),
	}
}

// oneOf returns one of the values.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// listingOf returns the listing of a class.
func listingOf(t testing.TB, in safety.Observation, namespace, class string) safety.Listing {
	t.Helper()
	i := slices.IndexFunc(in.Listings, func(l safety.Listing) bool {
		return l.Class == types.NamespacedName{Namespace: namespace, Name: class}
	})
	require.GreaterOrEqual(t, i, 0)
	return in.Listings[i]
}

// checkAction asserts the conditions of the package comment independently.
func checkAction(t testing.TB, before safety.State, in safety.Observation, a safety.DeleteVM, p safety.Policy, now time.Time) {
	t.Helper()
	l := listingOf(t, in, a.Namespace, a.Class)
	require.True(t, l.VMs.Complete && in.Machines.Complete && !l.Unsupported)
	require.True(t, in.Namespace == safety.AllNamespaces || in.Namespace == a.Namespace)
	for _, at := range []time.Time{l.VMs.AsOf, in.Machines.AsOf} {
		require.False(t, at.After(now) || now.Sub(at) > 5*time.Minute)
	}
	require.False(t, in.Machines.AsOf.Before(l.VMs.AsOf))
	require.Contains(t, l.VMs.Items, safety.VM{ProviderID: a.ProviderID, MachineName: a.MachineName})
	require.NotEmpty(t, a.MachineName)
	id := nodeops.NormalizeProviderID(a.ProviderID)
	require.NotEmpty(t, id)
	inventory, twins := 0, 0
	for _, m := range in.Machines.Items {
		require.NotNil(t, m)
		require.NotEqual(t, id, nodeops.NormalizeProviderID(m.Spec.ProviderID), "owned")
		if m.Name == a.MachineName {
			require.NotEmpty(t, m.Spec.ProviderID, "being created")
			twins++
		}
		if m.Namespace == a.Namespace {
			inventory++
		}
	}
	require.Equal(t, twins == 0, a.Reason == safety.NoMachine)
	require.Equal(t, twins > 0, a.Reason == safety.SecondVM)
	require.Positive(t, inventory)
	known, ok := before.Seen[id]
	require.True(t, ok, "the machines were read once")
	grace := p.Grace
	if grace <= 0 {
		grace = 10 * time.Minute
	}
	require.GreaterOrEqual(t, now.Sub(known.First), grace)
	require.Positive(t, p.MaxDeletions)
}

// checkSideAction asserts the conditions for side resources independently.
func checkSideAction(t testing.TB, before safety.State, in safety.Observation, a safety.DeleteSideResource, p safety.Policy, now time.Time) {
	t.Helper()
	l, r := listingOf(t, in, a.Namespace, a.Class), a.Resource
	require.True(t, l.VMs.Complete && l.SideResources.Complete && l.DeletesSideResources && in.Machines.Complete)
	at := l.SideResources.AsOf
	require.False(t, in.Machines.AsOf.Before(at) || at.After(now) || now.Sub(at) > 5*time.Minute)
	require.Contains(t, l.SideResources.Items, r)
	require.True(t, r.Kind != "" && r.ID != "" && r.MachineName != "")
	id := nodeops.NormalizeProviderID(r.ProviderID)
	of := func(name, providerID string) bool {
		return name == r.MachineName || id != "" && nodeops.NormalizeProviderID(providerID) == id
	}
	for _, m := range in.Machines.Items {
		require.False(t, of(m.Name, m.Spec.ProviderID), "owned")
	}
	for _, l := range in.Listings {
		for _, v := range l.VMs.Items {
			require.False(t, of(v.MachineName, v.ProviderID), "it has a VM")
		}
	}
	known, ok := before.Seen[r.Kind+" "+r.ID]
	require.True(t, ok, "the machines were read once")
	require.Positive(t, now.Sub(known.First))
	require.Positive(t, p.MaxDeletions)
}

func shuffled(r *rand.Rand, in safety.Observation) safety.Observation {
	in.Machines.Items, in.Nodes.Items, in.Listings = mixed(r, in.Machines.Items), mixed(r, in.Nodes.Items), mixed(r, in.Listings)
	for i := range in.Listings {
		l := &in.Listings[i]
		l.VMs.Items, l.SideResources.Items = mixed(r, l.VMs.Items), mixed(r, l.SideResources.Items)
	}
	return in
}

func TestStep_AnyHistory_Laws(t *testing.T) {
	var deleted, twins, sides, nodes int
	for seed := range uint64(280) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, now := randomPolicy(r), start
		period := p.Period
		if period <= 0 {
			period = 15 * time.Minute
		}
		var state safety.State
		var proposals []time.Time
		for round := range 40 {
			now = now.Add(time.Duration(r.IntN(8)) * time.Minute)
			in := randomObservation(r, now)
			at := fmt.Sprintf("seed %d round %d", seed, round)
			stateBefore, inBefore := toJSON(t, state), toJSON(t, in)
			next, d := safety.Step(state, in, p, now)
			require.Equal(t, stateBefore+inBefore, toJSON(t, state)+toJSON(t, in), "%s: the input changed", at)

			next2, d2 := safety.Step(state, shuffled(r, in), p, now)
			require.Empty(t, cmp.Diff(next, next2)+cmp.Diff(d, d2), "%s: the order matters", at)
			var stored safety.State
			require.NoError(t, json.Unmarshal([]byte(stateBefore), &stored))
			next3, d3 := safety.Step(stored, in, p, now)
			require.Empty(t, cmp.Diff(next, next3)+cmp.Diff(d, d3), "%s: storing the state matters", at)

			for _, action := range d.Actions {
				proposals = append(proposals, now)
				if side, ok := action.(safety.DeleteSideResource); ok {
					checkSideAction(t, state, in, side, p, now)
					sides++
					continue
				}
				a, ok := action.(safety.DeleteVM)
				require.True(t, ok)
				checkAction(t, state, in, a, p, now)
				deleted++
				if a.Reason == safety.SecondVM {
					twins++
				}
			}
			recent := slices.DeleteFunc(slices.Clone(proposals), func(x time.Time) bool { return now.Sub(x) >= period })
			require.LessOrEqual(t, len(recent), p.MaxDeletions, at)
			checkHolds(t, in, d, now)
			if slices.Contains(reasons(d), safety.NodeWithoutVM) {
				nodes++
			}
			state = next
		}
		require.LessOrEqual(t, len(state.Seen), 14)
	}
	t.Logf("%d VMs, of these %d second VMs, %d side resources deleted; %d steps report Nodes", deleted, twins, sides, nodes)
	require.Greater(t, deleted-twins, 50, "too few actions to prove anything")
	require.Greater(t, twins, 5, "too few actions to prove anything")
	require.Greater(t, sides, 5, "too few actions to prove anything")
	require.Greater(t, nodes, 5, "too few actions to prove anything")
}

// checkHolds asserts that every listed VM has a machine, is deleted, or is held, itself or with
// its class.
func checkHolds(t testing.TB, in safety.Observation, d safety.Decision[machinist.Action], now time.Time) {
	t.Helper()
	about := map[string]bool{} // classes, and normalized provider IDs
	for _, h := range d.Holds {
		id, _ := strings.CutPrefix(h.Subject, "vm/")
		about[h.Subject], about[nodeops.NormalizeProviderID(id)] = true, true
		require.NotEmpty(t, h.Reason)
		require.NotEmpty(t, h.Subject)
		if h.Reason != safety.Unsupported {
			require.True(t, h.Until.After(now), h)
			require.False(t, d.NextCheck.IsZero() || d.NextCheck.After(h.Until))
		}
	}
	for _, a := range d.Actions {
		require.True(t, d.NextCheck.After(now))
		if a, ok := a.(safety.DeleteVM); ok {
			about[nodeops.NormalizeProviderID(a.ProviderID)] = true
		}
	}
	for _, l := range in.Listings { // a VM in one listing counts for all listings
		held := about["machines"] || about["machineclass/"+l.Class.String()]
		for _, vm := range l.VMs.Items {
			id := nodeops.NormalizeProviderID(vm.ProviderID)
			if held || id == "" || slices.ContainsFunc(in.Machines.Items, func(m *v1alpha1.Machine) bool {
				return nodeops.NormalizeProviderID(m.Spec.ProviderID) == id || m.Name == vm.MachineName && m.Spec.ProviderID == ""
			}) {
				about[id] = true
			}
		}
	}
	for _, l := range in.Listings {
		for _, vm := range l.VMs.Items {
			require.True(t, about[nodeops.NormalizeProviderID(vm.ProviderID)], "no action and no hold is about %v", vm)
		}
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

// TestStep_AnyRecordedTime_AsksAgainLaterAndKeepsToTheLimit uses other clocks for the times of
// the observation and of the state.
func TestStep_AnyRecordedTime_AsksAgainLaterAndKeepsToTheLimit(t *testing.T) {
	t.Parallel()
	recorded := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 41))
		p, state := randomPolicy(r), safety.State{}
		for i := range 4 {
			state, _ = safety.Step(state, randomObservation(r, recorded.Add(time.Duration(i)*time.Hour)), p, recorded.Add(time.Duration(i)*time.Hour))
		}
		for _, ahead := range []time.Duration{-24 * time.Hour, -30 * time.Minute, -3 * time.Second, 3 * time.Second, 30 * time.Minute, 24 * time.Hour} {
			clock := recorded.Add(3*time.Hour + ahead)
			in := randomObservation(r, clock)
			next, d := safety.Step(state, in, p, clock)
			require.True(t, d.NextCheck.After(clock) || d.NextCheck.IsZero() && len(d.Actions) == 0, "seed %d: %+v", seed, d)
			_, again := safety.Step(next, in, p, clock.Add(time.Millisecond))
			require.LessOrEqual(t, len(d.Actions)+len(again.Actions), p.MaxDeletions, "seed %d: more deletions than one period allows", seed)
		}
	}
}

// FuzzStep calls Step with any state, listing and policy.
func FuzzStep(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{}`), []byte(`{}`), int64(0))
	f.Add([]byte(`{"seen":{"c://z/x":{"class":"shoot/small","machineName":"x","reason":"NoMachine","first":"2026-03-01T12:00:00Z","last":"2026-03-01T12:00:00Z"}}}`),
		[]byte(`{"Listings":[{"Class":{"Namespace":"shoot","Name":"small"},"VMs":{"Items":[{"ProviderID":"c:///z/x","MachineName":"x"}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}],
"Machines":{"Items":[{"metadata":{"name":"m","namespace":"shoot"},"spec":{"providerID":"c:///z/m"}}],"AsOf":"2026-03-01T12:11:00Z","Complete":true},"Namespace":"*"}`),
		[]byte(`{"MaxDeletions":5}`), int64(11*time.Minute))
	f.Add([]byte(`{"seen":{"disk 1":{"class":"shoot/small","kind":"disk","machineName":"x","reason":"Leftover","first":"2026-03-01T12:00:00Z","last":"2026-03-01T12:00:00Z"}}}`),
		[]byte(`{"Listings":[{"Class":{"Namespace":"shoot","Name":"small"},"VMs":{"AsOf":"2026-03-01T12:11:00Z","Complete":true},"DeletesSideResources":true,
"SideResources":{"Items":[{"Kind":"disk","ID":"1","MachineName":"x"}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}],
"Machines":{"Items":[{"metadata":{"name":"m","namespace":"shoot"}}],"AsOf":"2026-03-01T12:11:00Z","Complete":true},"Namespace":"*","Nodes":{"Items":[null,{}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}`),
		[]byte(`{"MaxDeletions":5}`), int64(11*time.Minute))
	f.Add([]byte(`{"proposed":["9999-01-01T00:00:00Z"]}`), []byte(`{"Listings":[{}],"Machines":{"Items":[null]}}`), []byte(`{"Grace":-1,"Period":9223372036854775807}`), int64(-1))
	f.Fuzz(func(t *testing.T, rawState, rawIn, rawPolicy []byte, after int64) {
		var state safety.State
		var in safety.Observation
		var p safety.Policy
		if json.Unmarshal(rawState, &state) != nil || json.Unmarshal(rawIn, &in) != nil || json.Unmarshal(rawPolicy, &p) != nil {
			t.Skip()
		}
		now := start.Add(time.Duration(after))
		next, d := safety.Step(state, in, p, now)
		for _, action := range d.Actions {
			switch a := action.(type) {
			case safety.DeleteVM:
				checkAction(t, state, in, a, p, now)
				require.Equal(t, a.ProviderID, a.Machine().Spec.ProviderID)
			case safety.DeleteSideResource:
				checkSideAction(t, state, in, a, p, now)
			}
		}
		require.LessOrEqual(t, len(d.Actions), max(0, p.MaxDeletions))
		if len(d.Actions) > 0 {
			_, again := safety.Step(next, in, p, now)
			for _, a := range d.Actions {
				require.NotContains(t, again.Actions, a, "proposed twice at a time")
			}
		}
		in.Machines = drain.List[*v1alpha1.Machine]{}
		_, d = safety.Step(state, in, p, now)
		require.Empty(t, d.Actions)
	})
}
