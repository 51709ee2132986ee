// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
		"no owner: no machine":                                   {vm: vm("x"), deleted: true},
		"its machine":                                            {vm: vm("x"), machine: machine("shoot", "x", id("x"))},
		"its machine, which is being created":                    {vm: vm("x"), machine: machine("shoot", "x", "")},
		"its machine, whose ID is spelt with more slashes":       {vm: vm("x"), machine: machine("shoot", "x", "cloud:////zone/x/")},
		"a machine of another name with its ID":                  {vm: vm("x"), machine: machine("shoot", "y", id("x"))},
		"a machine of another namespace with its ID":             {vm: vm("x"), machine: machine("b", "x", id("x"))},
		"a machine that is being created elsewhere":              {vm: vm("x"), machine: machine("b", "x", "")},
		"no owner: its machine has another VM":                   {vm: second, deleted: true},
		"perhaps its machine, whose own VM is not listed":        {vm: vm("x"), machine: machine("shoot", "x", id("y")), held: safety.InDoubt},
		"perhaps its machine, whose ID differs in the zone":      {vm: vm("x"), machine: machine("shoot", "x", "cloud:///other/x"), held: safety.InDoubt},
		"perhaps a machine of another namespace":                 {vm: vm("x"), machine: machine("b", "x", id("y")), held: safety.InDoubt},
		"unclear: no ID":                                         {vm: safety.VM{MachineName: "x"}, held: safety.Unidentified},
		"unclear: an ID that identifies no VM":                   {vm: safety.VM{ProviderID: " / ", MachineName: "x"}, held: safety.Unidentified},
		"unclear: no name":                                       {vm: safety.VM{ProviderID: id("x")}, held: safety.Unidentified},
		"a machine with its ID, although it carries no name":     {vm: safety.VM{ProviderID: id("x")}, machine: machine("shoot", "x", id("x"))},
		"no owner: the machine of the same name has another one": {vm: second, deleted: true, machine: machine("shoot", "m11", "")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.vm)
			if tc.machine != nil {
				w.machines = append(w.machines, tc.machine)
			}
			d := twice(w.at(start), w.at(late), safety.DefaultPolicy())
			if tc.deleted {
				require.Equal(t, []string{tc.vm.MachineName}, names(d), d)
			} else {
				require.Empty(t, d.Actions)
			}
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
		w := newWorld(vm("young"))
		young := machine("shoot", "young", "")
		young.Status.CurrentStatus.Phase = phase
		w.machines = append(w.machines, young)
		require.Empty(t, twice(w.at(start), w.at(late), safety.DefaultPolicy()).Actions, phase)
	}
}

func TestStep_SecondVM_NamesTheOwner(t *testing.T) {
	w := newWorld(safety.VM{ProviderID: id("twin"), MachineName: "m3"})
	d := twice(w.at(start), w.at(late), safety.DefaultPolicy())
	require.Equal(t, []machinist.Action{safety.DeleteVM{
		ProviderID: id("twin"), MachineName: "m3", Namespace: "shoot", Class: "small", Reason: safety.SecondVM,
		OwnerUID: "uid-shoot-m3", OwnerProviderID: id("m3"),
	}}, plain(d))
}

func TestStep_ManySecondVMs_AreNotSuspicious(t *testing.T) {
	var twins []safety.VM
	for i := range 8 {
		twins = append(twins, safety.VM{ProviderID: id(fmt.Sprintf("twin%d", i)), MachineName: fmt.Sprintf("m%d", i)})
	}
	w := newWorld(twins...)
	require.Len(t, twice(w.at(start), w.at(late), safety.DefaultPolicy()).Actions, 5)
	half := w.at(late)
	half.Machines.Items = half.Machines.Items[:5]
	d := twice(w.at(start), half, safety.DefaultPolicy())
	require.Empty(t, d.Actions, "but lost machines hold second VMs too")
	require.Equal(t, []machinist.Reason{safety.Suspicious}, reasons(d))
}

// spoilers each make one list unusable.
var spoilers = map[string]struct {
	spoil func(*safety.Observation)
	held  machinist.Reason
}{
	"an incomplete listing":                {func(o *safety.Observation) { o.Listings[0].VMs.Complete = false }, safety.ListingUnusable},
	"an old listing":                       {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = late.Add(-6 * time.Minute) }, safety.ListingUnusable},
	"a listing from the future":            {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = late.Add(1) }, safety.ListingUnusable},
	"a listing of no known time":           {func(o *safety.Observation) { o.Listings[0].VMs.AsOf = time.Time{} }, safety.ListingUnusable},
	"two listings of one class":            {func(o *safety.Observation) { o.Listings = append(o.Listings, o.Listings[0]) }, safety.ListingUnusable},
	"a driver that cannot list":            {func(o *safety.Observation) { o.Listings[0].Unsupported = true }, safety.Unsupported},
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
	w, middle := newWorld(vm("lost")), start.Add(5*time.Minute)
	owned, other := newWorld(vm("lost")), newWorld(safety.VM{ProviderID: id("lost"), MachineName: "found"})
	owned.machines = append(owned.machines, machine("shoot", "lost", id("lost")))
	large := newWorld(vm("lost"), safety.VM{ProviderID: id("lost"), MachineName: "found"}).at(middle)
	large.Listings[0].Class.Name = "large"
	none, half := w.at(middle), w.at(middle)
	spoilers["no machine at all"].spoil(&none)
	spoilers["half of the machines"].spoil(&half)
	for name, between := range map[string]safety.Observation{
		"owned": owned.at(middle), "not listed": newWorld().at(middle), "of another name": other.at(middle), "of two names in another class": large,
		"a second VM": newWorld(safety.VM{ProviderID: id("lost"), MachineName: "m1"}).at(middle), "no machine at all": none, "half of the machines": half,
	} {
		s, _ := safety.Step(safety.State{}, w.at(start), safety.DefaultPolicy(), start)
		s, _ = safety.Step(s, between, safety.DefaultPolicy(), middle)
		s, d := safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
		require.Empty(t, d.Actions, name)
		_, d = safety.Step(s, w.at(late.Add(10*time.Minute)), safety.DefaultPolicy(), late.Add(10*time.Minute))
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

func TestStep_TwoClassesListAVM_DeletedOnce(t *testing.T) {
	w := newWorld(vm("lost"))
	both := func(at time.Time) safety.Observation {
		in := w.at(at)
		l := in.Listings[0]
		l.Class.Name = "large"
		in.Listings = append(in.Listings, l)
		return in
	}
	d := twice(both(start), both(late), safety.DefaultPolicy())
	require.Len(t, d.Actions, 1)
	require.Contains(t, plain(d), safety.DeleteVM{ProviderID: id("lost"), MachineName: "lost", Namespace: "shoot", Class: "large", Reason: safety.NoMachine})

	// It counts for either listing, also if each step sees only one of them.
	one, other := both(start), both(late)
	one.Listings, other.Listings = one.Listings[:1], other.Listings[1:]
	require.Equal(t, []string{"lost"}, names(twice(one, other, safety.DefaultPolicy())))
}

// TestStep_ManyCalls_AtMostMaxDeletionsInAPeriod differs from MCM, which has no limit.
func TestStep_ManyCalls_AtMostMaxDeletionsInAPeriod(t *testing.T) {
	var lost []safety.VM
	for i := range 12 {
		lost = append(lost, vm(fmt.Sprintf("lost%02d", i)))
	}
	w := newWorld(lost...)
	p := safety.DefaultPolicy()
	p.MaxPercent, p.MaxDeletions = 100, 3
	s, _ := safety.Step(safety.State{}, w.at(start), p, start)
	s, d := safety.Step(s, w.at(late), p, late)
	require.Equal(t, []string{"lost00", "lost01", "lost02"}, names(d))
	require.Len(t, d.Holds, 9)
	for i := range 14 {
		now := late.Add(time.Duration(i) * time.Minute)
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
	require.Equal(t, "nothing", d.String())
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

func TestNewListing_EachResponse_HasItsListing(t *testing.T) {
	vms := map[string]string{id("x"): "x"}
	l := safety.NewListing(small, vms, nil, start)
	require.True(t, l.VMs.Complete)
	require.Equal(t, []safety.VM{vm("x")}, l.VMs.Items)
	require.True(t, safety.NewListing(small, nil, nil, start).VMs.Complete)
	l = safety.NewListing(small, vms, status.Error(codes.Unavailable, "page 2"), start)
	require.False(t, l.VMs.Complete)
	require.Empty(t, l.VMs.Items)
	l = safety.NewListing(small, vms, fmt.Errorf("wrapped: %w", status.Error(codes.Unimplemented, "")), start)
	require.True(t, l.Unsupported)
	require.False(t, l.VMs.Complete)
}

func TestPolicy_Invalid_ReturnsErrorAndDeletesLess(t *testing.T) {
	require.NoError(t, safety.Policy{}.Validate())
	require.NoError(t, safety.DefaultPolicy().Validate())
	for _, p := range []safety.Policy{
		{Grace: -1}, {Period: -1}, {MaxDeletions: -1}, {MaxPercent: -1}, {MaxPercent: 101},
	} {
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
	w := newWorld(vm("lost"))
	known := func(first, last, proposed time.Time) safety.State {
		var s safety.State
		require.NoError(t, json.Unmarshal([]byte(toJSON(t, map[string]any{"seen": map[string]any{"cloud://zone/lost": map[string]any{
			"class": "shoot/small", "machineName": "lost", "reason": safety.NoMachine, "first": first, "last": last, "proposed": proposed,
		}}})), &s))
		return s
	}
	future := late.Add(1000 * time.Hour)
	for name, s := range map[string]safety.State{
		"first after last": known(late, start, time.Time{}),
		"from the future":  known(start, future, time.Time{}),
		"no times":         known(time.Time{}, time.Time{}, time.Time{}),
	} {
		_, d := safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
		require.Empty(t, d.Actions, name)
	}
	_, d := safety.Step(known(start, start, time.Time{}), w.at(late), safety.DefaultPolicy(), late)
	require.Equal(t, []string{"lost"}, names(d), "otherwise it is")

	s := known(start, start, future)
	s.Proposed = []time.Time{future, future, future, future, future}
	s, d = safety.Step(s, w.at(late), safety.DefaultPolicy(), late)
	require.Equal(t, late.Add(10*time.Minute), d.NextCheck, "a proposal of the future holds for a while, not for ever")
	for _, at := range s.Proposed {
		require.False(t, at.After(late))
	}
}

// TestStep_TwoClassesListAVM_OneReadOfTheMachinesIsNotEnough uses listings of
// different age.
func TestStep_TwoClassesListAVM_OneReadOfTheMachinesIsNotEnough(t *testing.T) {
	w := newWorld(vm("lost"))
	p := safety.DefaultPolicy()
	p.Grace = 2 * time.Minute
	both := func(at time.Time) safety.Observation {
		in := w.at(at)
		older := in.Listings[0]
		older.Class.Name, older.VMs.AsOf = "large", at.Add(-3*time.Minute)
		in.Listings = append(in.Listings, older)
		return in
	}
	s, d := safety.Step(safety.State{}, both(start), p, start)
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Reason{safety.WaitingForGrace}, reasons(d))
	_, d = safety.Step(s, both(start.Add(time.Minute)), p, start.Add(time.Minute))
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
