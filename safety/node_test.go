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
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/safety"
)

func TestDeleteVM_OwnsNode(t *testing.T) {
	t.Parallel()
	action := safety.DeleteVM{ProviderID: "cloud:///zone/vm-1", MachineName: "m"}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"no Node":                      {nil, false},
		"its Node":                     {labeled(joined("n", "cloud:///zone/vm-1"), "m"), true},
		"its Node, never labeled":      {joined("n", "cloud:///zone/vm-1"), true},
		"the Node of another machine":  {labeled(joined("n", "cloud:///zone/vm-1"), "n"), false},
		"the Node of another VM":       {labeled(joined("n", "cloud:///zone/vm-2"), "m"), false},
		"a VM of that name elsewhere":  {labeled(joined("n", "cloud:///region/vm-1"), "m"), false},
		"a Node without a provider ID": {labeled(joined("n", ""), "m"), false},
	} {
		require.Equal(t, tc.want, action.OwnsNode(tc.node), name)
	}
	require.False(t, safety.DeleteVM{}.OwnsNode(joined("n", "")))
}

var large = types.NamespacedName{Namespace: "shoot", Name: "large"}

// listedBy returns an observation with the Node and with the listings of the classes alone.
func listedBy(at time.Time, node *corev1.Node, classes ...types.NamespacedName) safety.Observation {
	in := seeNodes(newWorld().at(at), node)
	listing := in.Listings[0]
	in.Listings = nil
	for _, class := range classes {
		listing.Class = class
		in.Listings = append(in.Listings, listing)
	}
	in.Classes = []types.NamespacedName{small, large}
	return in
}

// TestStep_ListingsAtAnyTime_NodeIsReportedOnceAllLackIt lists random classes in each step, while
// VMs, machines and Nodes come and go.
func TestStep_ListingsAtAnyTime_NodeIsReportedOnceAllLackIt(t *testing.T) {
	t.Parallel()
	reports := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 31))
		p, now := safety.DefaultPolicy(), start
		created, known := start.Add(-time.Hour), start.Add(-time.Hour) // known is when a machine or a VM last existed
		present, owned := map[types.NamespacedName]bool{}, false
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
			}
			if r.IntN(12) == 0 {
				present[classes[0]] = !present[classes[0]]
			}
			if r.IntN(12) == 0 {
				owned = !owned
			}
			in := listedBy(now, newNode("left", id("left"), created), classes...)
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

// TestStep_HeldClass_AnyHistory_EventsLaws changes the number of VMs without a machine at random. There
// is an Event when the class is first held, and when the number has grown, at most one in a period.
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
				text := fmt.Sprintf("Warning OrphansHeld machineclass/shoot/small: no orphan is deleted: %d of %d VMs have no machine", len(lost), 10+len(lost))
				require.True(t, strings.HasPrefix(d.Events[0].String(), text), at)
				require.Equal(t, "machineclass/shoot/small", d.Events[0].Subject)
				most, told, events = len(lost), now, events+1
			}
			held = is
		}
	}
	require.Greater(t, events, 500)
}
