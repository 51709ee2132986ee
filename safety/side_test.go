// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// disk returns a disk of a machine, which belongs to the VM with a provider ID.
func disk(name, providerID string) driver.SideResource {
	return driver.SideResource{Kind: "disk", ID: "disk-of-" + name, MachineName: name, ProviderID: providerID}
}

// withSides adds a complete listing of side resources of the machines and further ones.
func withSides(in safety.Observation, more ...driver.SideResource) safety.Observation {
	l := &in.Listings[0]
	l.SideResources = drain.List[driver.SideResource]{AsOf: l.VMs.AsOf, Complete: true}
	l.DeletesSideResources = true
	for _, m := range in.Machines.Items {
		l.SideResources.Items = append(l.SideResources.Items, disk(m.Name, m.Spec.ProviderID))
	}
	l.SideResources.Items = append(l.SideResources.Items, more...)
	return in
}

func TestStep_SideResourceWithoutMachineAndVM_IsDeletedAfterGrace(t *testing.T) {
	t.Parallel()
	w, left := pool(10), disk("lost", "")
	nic := driver.SideResource{Kind: "nic", ID: "disk-of-lost", MachineName: "lost"}
	s, d := safety.Step(safety.State{}, withSides(w.at(start), left, nic), safety.DefaultPolicy(), start)
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Reason{safety.WaitingForGrace, safety.WaitingForGrace}, reasons(d))
	s, d = safety.Step(s, withSides(w.at(late), left, nic), safety.DefaultPolicy(), late)
	require.Equal(t, []machinist.Action{
		safety.DeleteSideResource{Resource: left, Namespace: "shoot", Class: "small", Reason: safety.Leftover},
		safety.DeleteSideResource{Resource: nic, Namespace: "shoot", Class: "small", Reason: safety.Leftover},
	}, plain(d))
	require.Equal(t, "delete sideresource/disk/disk-of-lost of machine/shoot/lost: Leftover: without a machine in the listings from 2026-03-01T12:00:00Z to 2026-03-01T12:11:00Z; "+
		"1 of 11 machine names of side resources have no machine; machines read: 10; deletion 1 of at most 5 within 15m0s", d.Actions[0].String())

	gone := late.Add(time.Minute)
	s, d = safety.Step(s, withSides(w.at(gone), nic), safety.DefaultPolicy(), gone)
	require.Empty(t, d.Actions)
	require.Len(t, d.Holds, 1)
	require.Equal(t, "sideresource/nic/disk-of-lost", d.Holds[0].Subject)
	require.Len(t, s.Seen, 1, "a deleted resource is forgotten")
}

func TestStep_SideResource_IsProtectedByMachineOrVM(t *testing.T) {
	t.Parallel()
	type observed struct { // left is the resource of the machine "lost"
		in      *safety.Observation
		listing *safety.Listing
		left    *driver.SideResource
	}
	add := func(o observed, name, providerID string) {
		o.in.Machines.Items = append(o.in.Machines.Items, machine("shoot", name, providerID))
	}
	for name, tc := range map[string]struct {
		change func(o observed)
		held   machinist.Reason
	}{
		"a machine of its name": {func(o observed) { add(o, "lost", "") }, ""},
		"a listed VM of its name": {func(o observed) {
			o.listing.VMs.Items = append(o.listing.VMs.Items, vm("lost"))
		}, safety.WaitingForGrace},
		"no name":                      {func(o observed) { o.left.MachineName = "" }, safety.Unidentified},
		"no ID":                        {func(o observed) { o.left.ID = "" }, safety.Unidentified},
		"no kind":                      {func(o observed) { o.left.Kind = "" }, safety.Unidentified},
		"an incomplete listing":        {func(o observed) { o.listing.SideResources.Complete = false }, safety.ListingUnusable},
		"an old listing":               {func(o observed) { o.listing.SideResources.AsOf = late.Add(-6 * time.Minute) }, safety.ListingUnusable},
		"a listing of no time":         {func(o observed) { o.listing.SideResources.AsOf = time.Time{} }, ""},
		"machines read before":         {func(o observed) { o.listing.SideResources.AsOf = late.Add(1) }, safety.MachinesUnusable},
		"a listing of VMs that failed": {func(o observed) { o.listing.VMs.Complete = false }, safety.ListingUnusable},
		"a driver that cannot":         {func(o observed) { o.listing.DeletesSideResources = false }, safety.ReportOnly},
		"half of the machines":         {func(o observed) { o.in.Machines.Items = o.in.Machines.Items[:5] }, safety.Suspicious},
		"no machine at all":            {func(o observed) { o.in.Machines.Items = nil }, safety.Suspicious},
		"a machine with its VM, which is not listed": {func(o observed) {
			add(o, "x", id("y"))
			o.left.ProviderID = id("y")
		}, ""},
		"another one of its key": {func(o observed) {
			other := driver.SideResource{Kind: "disk", ID: o.left.ID, MachineName: "x"}
			o.listing.SideResources.Items = append(o.listing.SideResources.Items, other)
		}, safety.Unidentified},
		"too many others": {func(o observed) {
			for i := range 5 {
				o.listing.SideResources.Items[i].MachineName = fmt.Sprint("also-lost-", i)
				o.listing.SideResources.Items[i].ProviderID = ""
			}
		}, safety.Suspicious},
		"a listed VM with its ID": {func(o observed) {
			o.listing.VMs.Items = append(o.listing.VMs.Items, vm("other"))
			o.left.ProviderID = "CLOUD:////zone/other"
		}, safety.WaitingForGrace},
		"a listing of another class that failed": {func(o observed) {
			failed := safety.Listing{Class: large, VMs: drain.List[safety.VM]{Items: []safety.VM{vm("lost")}}}
			o.in.Listings = append(o.in.Listings, failed)
		}, safety.ListingUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, left := pool(10), disk("lost", "")
			s, _ := safety.Step(old, withSides(w.at(start), left), safety.DefaultPolicy(), start)
			_, d := safety.Step(s, withSides(w.at(late), left), safety.DefaultPolicy(), late.Add(1))
			require.Len(t, d.Actions, 1, "nothing protects it")
			in := withSides(w.at(late), left)
			tc.change(observed{&in, &in.Listings[0], &in.Listings[0].SideResources.Items[10]})
			_, d = safety.Step(s, in, safety.DefaultPolicy(), late.Add(1))
			require.Empty(t, d.Actions)
			if tc.held == "" {
				require.Empty(t, d.Holds)
			} else {
				require.Contains(t, reasons(d), tc.held)
			}
		})
	}
}

// TestStep_ManySideResources_AtMostTheShareOfADay removes machines whose VMs do not
// exist, so that only disks are listed.
func TestStep_ManySideResources_AtMostTheShareOfADay(t *testing.T) {
	t.Parallel()
	w, state, now, deleted := pool(20), old, start, 0
	gone := map[string]bool{}
	for now.Before(start.Add(19 * time.Hour)) {
		in := withSides(w.at(now))
		l := &in.Listings[0]
		l.SideResources.Items = slices.DeleteFunc(l.SideResources.Items, func(r driver.SideResource) bool { return gone[r.MachineName] })
		lost := int(now.Sub(start).Hours())
		in.Machines.Items, l.VMs.Items = in.Machines.Items[lost:], l.VMs.Items[lost:]
		var d safety.Decision[machinist.Action]
		state, d = safety.Step(state, in, safety.DefaultPolicy(), now)
		deleted += len(d.Actions)
		for _, a := range d.Actions {
			gone[a.(safety.DeleteSideResource).Resource.MachineName] = true
		}
		now = d.NextCheck
	}
	require.Equal(t, 4, deleted)
}

func TestDeleteSideResource_MachineExists_IsInvalid(t *testing.T) {
	t.Parallel()
	a := safety.DeleteSideResource{Resource: disk("x", ""), Reason: safety.Leftover}
	require.True(t, a.StillValid(nil))
	require.False(t, a.StillValid(machine("shoot", "x", "")))
	require.False(t, safety.DeleteSideResource{}.StillValid(nil))
}

func TestStep_NodeWithoutMachineAndVM_IsReported(t *testing.T) {
	t.Parallel()
	left := joined("left", id("gone"))
	for name, tc := range map[string]struct {
		node   *corev1.Node
		change func(in *safety.Observation)
		held   bool
	}{
		"neither machine nor VM":          {node: left, held: true},
		"no provider ID":                  {node: joined("left", "")},
		"of another provider":             {node: joined("left", "other:///zone/gone")},
		"the ID of a machine":             {node: joined("x", id("m3"))},
		"the ID of a VM without machine":  {node: joined("x", "cloud:////zone/lost")},
		"the label of a machine":          {node: labeled(joined("x", id("gone")), "m3")},
		"the label of a lost machine":     {node: labeled(joined("x", id("gone")), "gone"), held: true},
		"a machine that names it":         {node: joined("node-5", id("gone"))},
		"younger than the listing":        {node: newNode("left", id("gone"), start)},
		"nil":                             {},
		"Nodes that were not all read":    {node: left, change: func(in *safety.Observation) { in.Nodes.Complete = false }},
		"Nodes read long ago":             {node: left, change: func(in *safety.Observation) { in.Nodes.AsOf = start.Add(-time.Hour) }},
		"a listing that failed":           {node: left, change: func(in *safety.Observation) { in.Listings[0].VMs.Complete = false }},
		"another class that failed":       {node: left, change: func(in *safety.Observation) { in.Classes = append(in.Classes, large) }},
		"no classes":                      {node: left, change: func(in *safety.Observation) { in.Classes = nil }},
		"machines that were not all read": {node: left, change: func(in *safety.Observation) { in.Machines.Complete = false }},
		"a listing without any VM":        {node: left, change: func(in *safety.Observation) { in.Listings[0].VMs.Items = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(vm("lost"))
			w.machines[5].Labels = map[string]string{v1alpha1.NodeLabelKey: "node-5"}
			in := seeNodes(w.at(start), tc.node)
			in.Classes = []types.NamespacedName{small}
			if tc.change != nil {
				tc.change(&in)
			}
			_, d := safety.Step(old, in, safety.DefaultPolicy(), start)
			require.Equal(t, tc.held, slices.Contains(reasons(d), safety.NodeWithoutVM), d)
			require.Empty(t, d.Actions)
			if tc.node == left && tc.held {
				require.Contains(t, d.Holds, machinist.Hold{
					Subject: "node/left", Reason: safety.NodeWithoutVM, Until: start.Add(15 * time.Minute),
					Message: "provider ID cloud:///zone/gone is in no machine and in none of 1 listings; delete the Node if its VM does not exist",
				})
			}
		})
	}
}
