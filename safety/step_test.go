// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

func TestStep_VMWithoutMachine_DeletedAfterGrace(t *testing.T) {
	w := newWorld(vm("lost"))
	s, d := safety.Step(safety.State{}, w.at(start), safety.DefaultPolicy(), start)
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Reason{safety.WaitingForGrace}, reasons(d))
	require.Equal(t, start.Add(10*time.Minute), d.NextCheck)

	_, again := safety.Step(s, w.at(start), safety.DefaultPolicy(), start.Add(4*time.Minute))
	require.Empty(t, again.Actions, "the same listing once more is no second one")

	_, d = safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
	require.Equal(t, []machinist.Action{safety.DeleteVM{
		ProviderID: id("lost"), MachineName: "lost", Namespace: "shoot", Class: "small", Reason: safety.NoMachine,
	}}, plain(d))
	require.False(t, d.NextCheck.IsZero())
	require.Equal(t, "delete vm/cloud:///zone/lost of machine/shoot/lost: NoMachine: without a machine in the listings from 2026-03-01T12:00:00Z to 2026-03-01T12:11:00Z; "+
		"1 of 11 VMs have no machine; machines read: 10; deletion 1 of at most 5 within 15m0s", d.String())
}

func TestStep_EachOwnership_DeletesOrProtects(t *testing.T) {
	second := safety.VM{ProviderID: id("other"), MachineName: "m1"}
	for name, tc := range map[string]struct {
		vm      safety.VM
		machine *v1alpha1.Machine
		deleted bool
		held    machinist.Reason
	}{
		"no owner: no machine":                               {vm: vm("x"), deleted: true},
		"its machine":                                        {vm: vm("x"), machine: machine("shoot", "x", id("x"))},
		"its machine, which is being created":                {vm: vm("x"), machine: machine("shoot", "x", "")},
		"its machine, whose ID is spelt with more slashes":   {vm: vm("x"), machine: machine("shoot", "x", "cloud:////zone/x/")},
		"a machine of another name with its ID":              {vm: vm("x"), machine: machine("shoot", "y", id("x"))},
		"no owner: its machine has another VM":               {vm: second, deleted: true},
		"perhaps its machine, whose own VM is not listed":    {vm: vm("x"), machine: machine("shoot", "x", id("y")), held: safety.InDoubt},
		"perhaps its machine, whose ID differs in the zone":  {vm: vm("x"), machine: machine("shoot", "x", "cloud:///other/x"), held: safety.InDoubt},
		"perhaps a machine of another namespace":             {vm: vm("x"), machine: machine("b", "x", id("y")), held: safety.InDoubt},
		"unclear: no ID":                                     {vm: safety.VM{MachineName: "x"}, held: safety.Unidentified},
		"unclear: an ID that identifies no VM":               {vm: safety.VM{ProviderID: " / ", MachineName: "x"}, held: safety.Unidentified},
		"unclear: no name":                                   {vm: safety.VM{ProviderID: id("x")}, held: safety.Unidentified},
		"a machine with its ID, although it carries no name": {vm: safety.VM{ProviderID: id("x")}, machine: machine("shoot", "x", id("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.vm)
			if tc.machine != nil {
				w = w.with(tc.machine)
			}
			d := twice(w.at(start), w.at(late), safety.DefaultPolicy())
			var want []string
			if tc.deleted {
				want = []string{tc.vm.MachineName}
			}
			require.Equal(t, want, names(d), d)
			if tc.held != "" {
				require.Equal(t, []machinist.Reason{tc.held}, reasons(d))
			} else {
				require.Empty(t, d.Holds)
			}
		})
	}
}

// TestStep_MachineInAnyPhase_ProtectsItsVM covers phases in which MCM deletes the VM.
func TestStep_MachineInAnyPhase_ProtectsItsVM(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{
		"", v1alpha1.MachinePending, v1alpha1.MachineAvailable, v1alpha1.MachineRunning, v1alpha1.MachineUnknown,
		v1alpha1.MachineFailed, v1alpha1.MachineTerminating, v1alpha1.MachineCrashLoopBackOff,
	} {
		young := machine("shoot", "young", "")
		young.Status.CurrentStatus.Phase = phase
		w := newWorld(vm("young")).with(young)
		require.Empty(t, twice(w.at(start), w.at(late), safety.DefaultPolicy()).Actions, phase)
	}
}

// spoilers each make one list unusable.
var spoilers = map[string]struct {
	spoil func(*safety.Observation)
	held  machinist.Reason
}{
	"an incomplete listing":      {func(o *safety.Observation) { o.Listings[0].VMs.Complete = false }, safety.ListingUnusable},
	"an old listing":             {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = late.Add(-6 * time.Minute) }, safety.ListingUnusable},
	"a listing from the future":  {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = late.Add(1) }, safety.ListingUnusable},
	"a listing of no known time": {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = time.Time{} }, safety.ListingUnusable},
	"two listings of one class":  {func(o *safety.Observation) { o.Listings = append(o.Listings, o.Listings[0]) }, safety.ListingUnusable},
	"a driver that cannot list": {func(o *safety.Observation) {
		o.Listings[0] = safety.NewListing(small, nil, fmt.Errorf("wrapped: %w", status.Error(codes.Unimplemented, "")), late)
	}, safety.Unsupported},
	"machines that are not all there":      {func(o *safety.Observation) { o.Machines.Complete = false }, safety.MachinesUnusable},
	"a machine that is nil":                {func(o *safety.Observation) { o.Machines.Items[4] = nil }, safety.MachinesUnusable},
	"machines were not read":               {func(o *safety.Observation) { o.Machines = drain.List[*v1alpha1.Machine]{} }, safety.MachinesUnusable},
	"machines read long ago":               {func(o *safety.Observation) { o.Machines.AsOf = late.Add(-6 * time.Minute) }, safety.MachinesUnusable},
	"machines from the future":             {func(o *safety.Observation) { o.Machines.AsOf = late.Add(1) }, safety.MachinesUnusable},
	"machines read before the VMs":         {func(o *safety.Observation) { o.Machines.AsOf = late.Add(-1) }, safety.MachinesUnusable},
	"machines of another namespace":        {func(o *safety.Observation) { o.Namespace = "b" }, safety.MachinesUnusable},
	"namespace of the machines is unknown": {func(o *safety.Observation) { o.Namespace = "" }, safety.MachinesUnusable},
	"no machine at all":                    {func(o *safety.Observation) { o.Machines.Items = nil }, safety.Suspicious},
	"machines only in other places":        {func(o *safety.Observation) { o.Machines.Items = []*v1alpha1.Machine{machine("b", "q", "b://1")} }, safety.Suspicious},
	"half of the machines":                 {func(o *safety.Observation) { o.Machines.Items = o.Machines.Items[:5] }, safety.Suspicious},
	"one machine restored of them all":     {func(o *safety.Observation) { o.Machines.Items = o.Machines.Items[:1] }, safety.Suspicious},
}

func TestStep_UnusableLists_DeleteNothing(t *testing.T) {
	w := newWorld(vm("lost"))
	require.Equal(t, []string{"lost"}, names(twice(w.at(start), w.at(late), safety.DefaultPolicy())))
	for name, tc := range spoilers {
		t.Run(name, func(t *testing.T) {
			bad := w.at(late)
			tc.spoil(&bad)
			d := twice(w.at(start), bad, safety.DefaultPolicy())
			require.Empty(t, d.Actions)
			require.Equal(t, []machinist.Reason{tc.held}, reasons(d))
			require.Equal(t, tc.held == safety.Unsupported, d.NextCheck.IsZero())
			require.NotEmpty(t, d.Holds[0].Subject)
		})
	}
}

// TestStep_OtherListingBetween_GraceStartsAgain changes what a step in the middle of the grace sees.
func TestStep_OtherListingBetween_GraceStartsAgain(t *testing.T) {
	w, middle, end := newWorld(vm("lost")), start.Add(5*time.Minute), late.Add(10*time.Minute)
	found := safety.VM{ProviderID: id("lost"), MachineName: "found"}
	other, none, half := newWorld(vm("lost"), found).at(middle), w.at(middle), w.at(middle)
	other.Listings[0].Class = large
	spoilers["no machine at all"].spoil(&none)
	spoilers["half of the machines"].spoil(&half)
	for name, between := range map[string]safety.Observation{
		"owned":                         w.with(machine("shoot", "lost", id("lost"))).at(middle),
		"not listed":                    newWorld().at(middle),
		"of another name":               newWorld(found).at(middle),
		"of two names in another class": other,
		"a second VM":                   newWorld(safety.VM{ProviderID: id("lost"), MachineName: "m1"}).at(middle),
		"no machine at all":             none,
		"half of the machines":          half,
	} {
		s, _ := safety.Step(safety.State{}, w.at(start), safety.DefaultPolicy(), start)
		s, _ = safety.Step(s, between, safety.DefaultPolicy(), middle)
		s, d := safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
		require.Empty(t, d.Actions, name)
		_, d = safety.Step(s, w.at(end), safety.DefaultPolicy(), end)
		require.Equal(t, []string{"lost"}, names(d), name)
	}
}

func TestStep_OlderListing_IsIgnored(t *testing.T) {
	w := newWorld(vm("lost"))
	s, _ := safety.Step(safety.State{}, w.at(start), safety.DefaultPolicy(), start)
	again, d := safety.Step(s, w.at(start.Add(-4*time.Minute)), safety.DefaultPolicy(), start)
	require.Equal(t, s, again)
	require.Empty(t, d.Actions)
}

// TestStep_EachHistory_DeletesOrHolds plays steps, each at the time at which its machines were read.
func TestStep_EachHistory_DeletesOrHolds(t *testing.T) {
	w, contradictory := newWorld(vm("lost")), newWorld(vm("lost"), safety.VM{ProviderID: "cloud:////zone/lost", MachineName: "found"})
	failed := w.at(start.Add(9 * time.Minute))
	failed.Listings = []safety.Listing{safety.NewListing(small, nil, errors.New("secret text"), start.Add(9*time.Minute))}
	soon, again := late.Add(9*time.Minute), late.Add(10*time.Minute)
	type history = []safety.Observation
	for name, c := range map[string]struct {
		steps   history
		deleted []string
		held    []machinist.Reason
		next    time.Time
	}{
		"a record of a day ago has expired":       {history{w.at(start), w.at(start.Add(24 * time.Hour))}, nil, []machinist.Reason{safety.WaitingForGrace}, start.Add(24*time.Hour + 10*time.Minute)},
		"a failed listing holds its class":        {history{w.at(start), failed}, nil, []machinist.Reason{safety.ListingUnusable}, start.Add(10 * time.Minute)},
		"and changes nothing":                     {history{w.at(start), failed, w.at(late)}, []string{"lost"}, nil, late.Add(15 * time.Minute)},
		"a contradictory listing is held":         {history{contradictory.at(start), contradictory.at(late)}, nil, []machinist.Reason{safety.Unidentified}, late.Add(15 * time.Minute)},
		"a VM that is still listed is waited for": {history{w.at(start), w.at(late), w.at(soon)}, nil, []machinist.Reason{safety.DeletionProposed}, again},
		"and deleted again":                       {history{w.at(start), w.at(late), w.at(soon), w.at(again)}, []string{"lost"}, nil, again.Add(15 * time.Minute)},
		"without VMs there is nothing to do":      {history{world{}.at(start), world{}.at(late)}, nil, nil, late.Add(15 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			var s safety.State
			var d safety.Decision[machinist.Action]
			for _, in := range c.steps {
				s, d = safety.Step(s, in, safety.DefaultPolicy(), in.Machines.AsOf)
			}
			require.Equal(t, c.deleted, names(d))
			require.Equal(t, c.held, reasons(d))
			require.Equal(t, c.next, d.NextCheck)
			require.NotContains(t, d.String(), "secret")
		})
	}
}

// TestStep_ListingFails_HoldsOnlyItsClass differs from MCM, where the first failed class ends the run.
func TestStep_ListingFails_HoldsOnlyItsClass(t *testing.T) {
	w := newWorld(vm("lost"))
	bad := types.NamespacedName{Namespace: "shoot", Name: "bad"}
	mixed := func(at time.Time) safety.Observation {
		in := w.at(at)
		in.Listings = append([]safety.Listing{safety.NewListing(bad, map[string]string{id("half"): "half"}, status.Error(codes.Unauthenticated, "no"), at)}, in.Listings...)
		return in
	}
	d := twice(mixed(start), mixed(late), safety.DefaultPolicy())
	require.Equal(t, []string{"lost"}, names(d))
	require.Equal(t, []machinist.Hold{{
		Subject: "machineclass/shoot/bad", Reason: safety.ListingUnusable, Message: "the listing failed with Unauthenticated", Until: late.Add(time.Minute),
	}}, d.Holds)
}

// alsoListed returns an observation in which another class lists the same VMs, read earlier.
func alsoListed(in safety.Observation, earlier time.Duration) safety.Observation {
	other := in.Listings[0]
	other.Class, other.VMs.AsOf = large, other.VMs.AsOf.Add(-earlier)
	in.Listings = append(in.Listings, other)
	return in
}

func TestStep_TwoClassesListAVM_DeletedOnce(t *testing.T) {
	w := newWorld(vm("lost"))
	one, other := alsoListed(w.at(start), 0), alsoListed(w.at(late), 0)
	d := twice(one, other, safety.DefaultPolicy())
	require.Equal(t, []machinist.Action{
		safety.DeleteVM{ProviderID: id("lost"), MachineName: "lost", Namespace: "shoot", Class: "large", Reason: safety.NoMachine},
	}, plain(d))

	// It counts for either listing, also if each step sees only one of them.
	one.Listings, other.Listings = one.Listings[:1], other.Listings[1:]
	require.Equal(t, []string{"lost"}, names(twice(one, other, safety.DefaultPolicy())))
}

// TestStep_ManyCalls_AtMostMaxDeletionsInAPeriod differs from MCM, which has no limit.
func TestStep_ManyCalls_AtMostMaxDeletionsInAPeriod(t *testing.T) {
	w := newWorld()
	for i := range 12 {
		w.vms = append(w.vms, vm(fmt.Sprintf("lost%02d", i)))
	}
	p := safety.DefaultPolicy()
	p.MaxPercent, p.MaxDeletions = 100, 3
	s, _ := safety.Step(safety.State{}, w.at(start), p, start)
	s, d := safety.Step(s, w.at(late), p, late)
	require.Equal(t, []string{"lost00", "lost01", "lost02"}, names(d))
	require.Len(t, d.Holds, 9)
	for now := late; now.Before(late.Add(14 * time.Minute)); now = now.Add(time.Minute) {
		s, d = safety.Step(s, w.at(now), p, now)
		require.Empty(t, d.Actions)
	}
	require.Contains(t, reasons(d), safety.RateLimited)
	now := late.Add(15 * time.Minute)
	s, d = safety.Step(s, w.at(now), p, now)
	require.Equal(t, []string{"lost03", "lost04", "lost05"}, names(d), "those that cannot be deleted do not starve the others")
	require.NotEmpty(t, s.Proposed)
}

func TestStep_ZeroPolicy_OnlyReports(t *testing.T) {
	w := newWorld(vm("lost"))
	d := twice(w.at(start), w.at(late), safety.Policy{})
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Hold{{Subject: "vm/" + id("lost"), Reason: safety.ReportOnly, Message: "NoMachine; the policy deletes nothing", Until: late.Add(15 * time.Minute)}}, d.Holds)
	w = newWorld(vm("lost"), vm("found"))
	require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(twice(w.at(start), w.at(late), safety.Policy{})))
}

func TestStep_ZeroObservation_DoesNothing(t *testing.T) {
	s, d := safety.Step(safety.State{}, safety.Observation{}, safety.DefaultPolicy(), start)
	require.Zero(t, s)
	require.Zero(t, d)
}

func TestStep_NoMachineAtAll_DeletesNothing(t *testing.T) {
	w := newWorld()
	w.machines = nil
	p := safety.DefaultPolicy()
	p.MaxPercent = 100
	require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(twice(w.at(start), w.at(late), p)))
}

func TestDeleteVM_MachineChanged_IsInvalid(t *testing.T) {
	alone := safety.DeleteVM{ProviderID: id("x"), MachineName: "x", Namespace: "shoot", Reason: safety.NoMachine}
	require.True(t, alone.StillValid(nil))
	require.False(t, alone.StillValid(machine("shoot", "x", "")))
	require.False(t, alone.StillValid(machine("shoot", "x", id("y"))))

	twin := safety.DeleteVM{ProviderID: id("x"), MachineName: "m", Reason: safety.SecondVM, OwnerUID: "uid-shoot-m", OwnerProviderID: id("m")}
	require.True(t, twin.StillValid(machine("shoot", "m", id("m"))))
	require.False(t, twin.StillValid(nil))
	require.False(t, twin.StillValid(machine("shoot", "m", "")))
	require.False(t, twin.StillValid(machine("shoot", "m", id("x"))))
	require.False(t, twin.StillValid(machine("b", "m", id("m"))), "another UID")
	twin.OwnerProviderID = twin.ProviderID
	require.False(t, twin.StillValid(machine("shoot", "m", id("x"))))
	twin.OwnerProviderID = ""
	require.False(t, twin.StillValid(machine("shoot", "m", "")))
	require.False(t, safety.DeleteVM{}.StillValid(nil), "no reason is no reason")

	m := alone.Machine()
	require.Equal(t, []string{"shoot", "x", id("x")}, []string{m.Namespace, m.Name, m.Spec.ProviderID})
}

func TestPolicy_Invalid_ReturnsErrorAndDeletesLess(t *testing.T) {
	require.NoError(t, safety.Policy{}.Validate())
	require.NoError(t, safety.DefaultPolicy().Validate())
	for _, p := range []safety.Policy{{Grace: -1}, {Period: -1}, {MaxDeletions: -1}, {MaxPercent: -1}, {MaxPercent: 101}} {
		require.Error(t, p.Validate())
	}
	w := newWorld(vm("lost"))
	wild := safety.Policy{Grace: -1, Period: math.MaxInt64, MaxDeletions: math.MaxInt, MaxPercent: math.MaxInt}
	s, d := safety.Step(safety.State{}, w.at(start), wild, start)
	require.Empty(t, d.Actions, "there is no policy without a grace")
	require.True(t, d.NextCheck.After(start))
	_, d = safety.Step(s, w.at(late), wild, late)
	require.Equal(t, []string{"lost"}, names(d))
	wild.MaxDeletions = -1
	_, d = safety.Step(s, w.at(late), wild, late)
	require.Empty(t, d.Actions)
}

func TestState_Damaged_DeletesNothingEarly(t *testing.T) {
	w, future, never := newWorld(vm("lost")), late.Add(1000*time.Hour), time.Time{}
	for name, c := range map[string]struct {
		first, last, proposed time.Time
		deleted               bool
	}{
		"first after last":          {late, start, never, false},
		"from the future":           {start, future, never, false},
		"no times":                  {never, never, never, false},
		"proposed in the future":    {start, start, future, false},
		"otherwise it is not early": {start, start, never, true},
	} {
		var s safety.State
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"seen":{"cloud://zone/lost":{"class":"shoot/small",
			"machineName":"lost","reason":"NoMachine","first":%q,"last":%q,"proposed":%q}}}`,
			c.first.Format(time.RFC3339), c.last.Format(time.RFC3339), c.proposed.Format(time.RFC3339)), &s))
		if c.proposed == future {
			s.Proposed = slices.Repeat([]time.Time{future}, 5)
		}
		s, d := safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
		require.Equal(t, c.deleted, len(d.Actions) > 0, name)
		if c.proposed == future {
			require.Equal(t, late.Add(10*time.Minute), d.NextCheck, "a proposal of the future holds for a while")
		}
		for _, at := range s.Proposed {
			require.False(t, at.After(late))
		}
	}
}

// TestStep_TwoClassesListAVM_OneReadOfTheMachinesIsNotEnough uses listings of
// different age.
func TestStep_TwoClassesListAVM_OneReadOfTheMachinesIsNotEnough(t *testing.T) {
	w, p, next := newWorld(vm("lost")), safety.DefaultPolicy(), start.Add(time.Minute)
	p.Grace = 2 * time.Minute
	s, d := safety.Step(safety.State{}, alsoListed(w.at(start), 3*time.Minute), p, start)
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Reason{safety.WaitingForGrace}, reasons(d))
	_, d = safety.Step(s, alsoListed(w.at(next), 3*time.Minute), p, next)
	require.Equal(t, []string{"lost"}, names(d))
}

func TestDecisions_JSON_HasLowerCamelCaseAndNoEmptyFields(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)
	deletion := safety.Decision[machinist.Action]{NextCheck: at, Actions: []machinist.Action{safety.DeleteVM{
		ProviderID: "cloud:///2", MachineName: "web-2", Namespace: "shop", Class: "small", Reason: safety.NoMachine, Message: "why",
	}}}
	require.JSONEq(t, `{"actions":[{"providerID":"cloud:///2","machineName":"web-2","namespace":"shop","class":"small","reason":"NoMachine","message":"why"}],
		"nextCheck":"2026-03-01T12:10:00Z"}`, toJSON(t, deletion))

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	mark := safety.Decision[machinist.Update]{Actions: []machinist.Update{{Before: node, Object: node, Changes: []string{"marked", "why"}}}}
	require.JSONEq(t, `{"actions":[{"type":"Update","subject":"node/n1","text":"update node n1: marked; why"}]}`, toJSON(t, mark))

	require.JSONEq(t, `{}`, toJSON(t, safety.Decision[machinist.Action]{}))
}
