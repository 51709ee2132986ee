// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/safety"
)

var large = types.NamespacedName{Namespace: "shoot", Name: "large"}

// leftNode returns the Node of a lost VM.
func leftNode(created time.Time) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "left", CreationTimestamp: metav1.NewTime(created)}, Spec: corev1.NodeSpec{ProviderID: id("left")}}
}

// listedBy returns an observation with the Node and with the listings of the classes alone.
func listedBy(at time.Time, node *corev1.Node, classes ...types.NamespacedName) safety.Observation {
	in := newWorld().at(at)
	listing := in.Listings[0]
	in.Listings = nil
	for _, class := range classes {
		listing.Class = class
		in.Listings = append(in.Listings, listing)
	}
	in.Classes = []types.NamespacedName{small, large}
	in.Nodes = drain.List[*corev1.Node]{Items: []*corev1.Node{node}, AsOf: at, Complete: true}
	return in
}

func TestStep_ClassesListedInDifferentSteps_NodeIsReported(t *testing.T) {
	t.Parallel()
	p := safety.DefaultPolicy()
	old := start.Add(-time.Hour)
	for name, tc := range map[string]struct {
		node   *corev1.Node
		before func(in *safety.Observation) // changes the first step
		after  time.Duration
		held   bool
	}{
		"3 seconds later":                   {node: leftNode(old), after: 3 * time.Second, held: true},
		"almost two periods later":          {node: leftNode(old), after: 29 * time.Minute, held: true},
		"more than two periods later":       {node: leftNode(old), after: 31 * time.Minute},
		"created between the listings":      {node: leftNode(start.Add(time.Second)), after: 3 * time.Second},
		"the first listing failed":          {node: leftNode(old), before: func(in *safety.Observation) { in.Listings[0].VMs.Complete = false }, after: 3 * time.Second},
		"the first listing contains the VM": {node: leftNode(old), before: func(in *safety.Observation) { in.Listings[0].VMs.Items = append(in.Listings[0].VMs.Items, vm("left")) }, after: 3 * time.Second},
		"a machine with its ID existed before": {node: leftNode(old), before: func(in *safety.Observation) {
			in.Machines.Items = append(in.Machines.Items, machine("shoot", "left", id("left")))
		}, after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := listedBy(start, tc.node, large)
			if tc.before != nil {
				tc.before(&first)
			}
			s, d := safety.Step(safety.State{}, first, p, start)
			require.NotContains(t, reasons(d), safety.NodeWithoutVM, "one class was never listed")
			now := start.Add(tc.after)
			_, d = safety.Step(s, listedBy(now, tc.node, small), p, now)
			require.Equal(t, tc.held, slices.Contains(reasons(d), safety.NodeWithoutVM), d)
		})
	}
}

// TestStep_HeldClassGrows_OneEventForEachGrowthInAPeriod counts the Events of a class whose VMs have
// no machine.
func TestStep_HeldClassGrows_OneEventForEachGrowthInAPeriod(t *testing.T) {
	t.Parallel()
	lost := func(n int) (vms []safety.VM) {
		for i := range n {
			vms = append(vms, vm(fmt.Sprint("lost-", i)))
		}
		return vms
	}
	var s safety.State
	for i, step := range []struct {
		minute, unowned int
		event           string
	}{
		{0, 3, "3 of 13 VMs have no machine"},
		{1, 3, ""},
		{2, 5, ""}, // within the period
		{15, 5, "5 of 15 VMs have no machine"},
		{30, 5, ""},
		{45, 4, ""},
		{60, 5, ""}, // no more than were reported
		{75, 16, "16 of 26 VMs have no machine"},
		{76, 17, ""},
		{80, 0, ""},
		{81, 3, "3 of 13 VMs have no machine"}, // a new hold
	} {
		now := start.Add(time.Duration(step.minute) * time.Minute)
		var d safety.Decision[machinist.Action]
		s, d = safety.Step(s, newWorld(lost(step.unowned)...).at(now), safety.DefaultPolicy(), now)
		if step.event == "" {
			require.Empty(t, d.Events, "step %d", i)
			continue
		}
		require.Len(t, d.Events, 1, "step %d", i)
		require.Equal(t, "machineclass/shoot/small", d.Events[0].Subject)
		require.True(t, strings.HasPrefix(d.Events[0].String(), "Warning OrphansHeld machineclass/shoot/small: no orphan is deleted: "+step.event), d.Events[0])
	}
}

// TestStep_ListingsAtAnyTime_NodeIsReportedOnceAllLackIt lists random classes in each step, while
// VMs, machines and Nodes come and go.
func TestStep_ListingsAtAnyTime_NodeIsReportedOnceAllLackIt(t *testing.T) {
	t.Parallel()
	reports := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 31))
		p, now := safety.DefaultPolicy(), start
		node, present, owned := leftNode(start.Add(-time.Hour)), map[types.NamespacedName]bool{}, false
		created, known := node.CreationTimestamp.Time, node.CreationTimestamp.Time // known is when a machine or a VM last existed
		last := map[types.NamespacedName]time.Time{}
		var s safety.State
		for round := range 80 {
			now = now.Add(time.Duration(1+r.IntN(600)) * time.Second)
			classes := []types.NamespacedName{small, large}
			if r.IntN(3) > 0 { // one of them is slower
				classes = classes[r.IntN(2):][:1]
			}
			if r.IntN(10) == 0 {
				created = now.Add(-time.Second)
				node = leftNode(created)
			}
			if r.IntN(12) == 0 {
				present[classes[0]] = !present[classes[0]]
			}
			if r.IntN(12) == 0 {
				owned = !owned
			}
			in := listedBy(now, node, classes...)
			if owned {
				in.Machines.Items = append(in.Machines.Items, machine("shoot", "left", id("left")))
			}
			for i, class := range classes {
				l := &in.Listings[i]
				l.VMs.Complete = r.IntN(8) > 0
				if l.VMs.Complete {
					last[class] = now
				}
				if present[class] {
					l.VMs.Items = append(slices.Clone(l.VMs.Items), vm("left"))
				}
			}
			usable := slices.ContainsFunc(in.Listings, func(l safety.Listing) bool { return l.VMs.Complete })
			if usable && owned {
				known = now
			}
			for _, l := range in.Listings {
				if usable && slices.Contains(l.VMs.Items, vm("left")) {
					known = now
				}
			}
			want := usable
			for _, class := range in.Classes {
				at := last[class]
				want = want && at.After(known) && at.After(created) && now.Sub(at) <= 2*p.Period
			}
			var d safety.Decision[machinist.Action]
			s, d = safety.Step(s, in, p, now)
			require.Equal(t, want, slices.Contains(reasons(d), safety.NodeWithoutVM), "seed %d round %d: %s", seed, round, d)
			if want {
				reports++
			}
		}
	}
	t.Logf("%d reports", reports)
	require.Greater(t, reports, 200)
}

// TestStep_HeldClass_AnyHistory_EventsLaws changes the number of VMs without a machine at random.
func TestStep_HeldClass_AnyHistory_EventsLaws(t *testing.T) {
	t.Parallel()
	events := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 32))
		var s safety.State
		var told time.Time
		now, held, most := start, false, 0
		for round := range 80 {
			now = now.Add(time.Duration(1+r.IntN(600)) * time.Second)
			var lost []safety.VM
			for i := range max(0, r.IntN(12)-2) {
				lost = append(lost, vm(fmt.Sprint("lost-", i)))
			}
			var d safety.Decision[machinist.Action]
			s, d = safety.Step(s, newWorld(lost...).at(now), safety.Policy{MaxPercent: 20}, now)
			is, at := slices.Contains(reasons(d), safety.Suspicious), fmt.Sprintf("seed %d round %d: %s", seed, round, d)
			grown, due := len(lost) > most, now.Sub(told) >= 15*time.Minute
			require.Equal(t, is && (!held || grown && due), len(d.Events) == 1, at)
			if len(d.Events) > 0 {
				most, told, events = len(lost), now, events+1
			}
			held = is
		}
	}
	require.Greater(t, events, 500)
}
