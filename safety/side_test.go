// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	w := pool(10)
	nic := driver.SideResource{Kind: "nic", ID: "disk-of-lost", MachineName: "lost"}
	s, d := safety.Step(safety.State{}, withSides(w.at(start), disk("lost", ""), nic), safety.DefaultPolicy(), start)
	require.Empty(t, d.Actions)
	require.Equal(t, []machinist.Reason{safety.WaitingForGrace, safety.WaitingForGrace}, reasons(d))
	s, d = safety.Step(s, withSides(w.at(late), disk("lost", ""), nic), safety.DefaultPolicy(), late)
	require.Equal(t, []machinist.Action{
		safety.DeleteSideResource{Resource: disk("lost", ""), Namespace: "shoot", Class: "small", Reason: safety.Leftover},
		safety.DeleteSideResource{Resource: nic, Namespace: "shoot", Class: "small", Reason: safety.Leftover},
	}, plain(d))
	require.Equal(t, "delete sideresource/disk/disk-of-lost of machine/shoot/lost: Leftover: without a machine in the listings from 2026-03-01T12:00:00Z to 2026-03-01T12:11:00Z; "+
		"1 of 11 machine names of side resources have no machine; machines read: 10; deletion 1 of at most 5 within 15m0s", d.Actions[0].String())

	gone := late.Add(time.Minute)
	s, d = safety.Step(s, withSides(w.at(gone), nic), safety.DefaultPolicy(), gone)
	require.Empty(t, d.Actions)
	require.Equal(t, []string{"sideresource/nic/disk-of-lost"}, subjects(d), "what is gone is forgotten")
	require.Len(t, s.Seen, 1)
}

func subjects(d safety.Decision[machinist.Action]) (out []string) {
	for _, h := range d.Holds {
		out = append(out, h.Subject)
	}
	return out
}

func TestStep_SideResource_IsProtectedByMachineOrVM(t *testing.T) {
	t.Parallel()
	left := disk("lost", "")
	for name, tc := range map[string]struct {
		change  func(in *safety.Observation)
		deleted bool
		held    machinist.Reason
	}{
		"nothing": {func(*safety.Observation) {}, true, ""},
		"a machine of its name": {func(in *safety.Observation) {
			in.Machines.Items = append(in.Machines.Items, machine("shoot", "lost", ""))
		}, false, ""},
		"a machine of its name in another namespace": {func(in *safety.Observation) {
			in.Machines.Items = append(in.Machines.Items, machine("b", "lost", id("x")))
		}, false, ""},
		"a machine of its name that failed": {func(in *safety.Observation) {
			m := machine("shoot", "lost", "")
			m.Status.CurrentStatus.Phase, m.DeletionTimestamp = v1alpha1.MachineFailed, &metav1.Time{Time: start}
			in.Machines.Items = append(in.Machines.Items, m)
		}, false, ""},
		"a machine of another name with its VM": {func(in *safety.Observation) {
			in.Listings[0].SideResources.Items[10].ProviderID = in.Machines.Items[0].Spec.ProviderID
		}, false, ""},
		"a machine of another name with its VM, which is not listed": {func(in *safety.Observation) {
			in.Listings[0].SideResources.Items[10].ProviderID = in.Machines.Items[0].Spec.ProviderID
			in.Listings[0].VMs.Items = in.Listings[0].VMs.Items[1:]
		}, false, ""},
		"a listed VM with its ID": {func(in *safety.Observation) {
			in.Listings[0].VMs.Items = append(in.Listings[0].VMs.Items, vm("other"))
			in.Listings[0].SideResources.Items[10].ProviderID = "CLOUD:////zone/other"
		}, false, safety.WaitingForGrace},
		"a listed VM of its name": {func(in *safety.Observation) {
			in.Listings[0].VMs.Items = append(in.Listings[0].VMs.Items, vm("lost"))
		}, false, safety.WaitingForGrace},
		"a listing of another class that failed": {func(in *safety.Observation) {
			l := safety.Listing{Class: small, VMs: drain.List[safety.VM]{Items: []safety.VM{vm("lost")}}}
			l.Class.Name = "large"
			in.Listings = append(in.Listings, l)
		}, false, safety.ListingUnusable},
		"no name":                      {func(in *safety.Observation) { in.Listings[0].SideResources.Items[10].MachineName = "" }, false, safety.Unidentified},
		"no ID":                        {func(in *safety.Observation) { in.Listings[0].SideResources.Items[10].ID = "" }, false, safety.Unidentified},
		"no kind":                      {func(in *safety.Observation) { in.Listings[0].SideResources.Items[10].Kind = "" }, false, safety.Unidentified},
		"an incomplete listing":        {func(in *safety.Observation) { in.Listings[0].SideResources.Complete = false }, false, safety.ListingUnusable},
		"an old listing":               {func(in *safety.Observation) { in.Listings[0].SideResources.AsOf = late.Add(-6 * time.Minute) }, false, safety.ListingUnusable},
		"a listing of no time":         {func(in *safety.Observation) { in.Listings[0].SideResources.AsOf = time.Time{} }, false, ""},
		"machines read before":         {func(in *safety.Observation) { in.Listings[0].SideResources.AsOf = late.Add(1) }, false, safety.MachinesUnusable},
		"a listing of VMs that failed": {func(in *safety.Observation) { in.Listings[0].VMs.Complete = false }, false, safety.ListingUnusable},
		"another one of its key": {func(in *safety.Observation) {
			in.Listings[0].SideResources.Items = append(in.Listings[0].SideResources.Items, driver.SideResource{Kind: "disk", ID: "disk-of-lost", MachineName: "x"})
		}, false, safety.Unidentified},
		"a driver that cannot": {func(in *safety.Observation) { in.Listings[0].DeletesSideResources = false }, false, safety.ReportOnly},
		"too many others": {func(in *safety.Observation) {
			for i := range 5 {
				in.Listings[0].SideResources.Items = append(in.Listings[0].SideResources.Items, disk(fmt.Sprint("also-", i), ""))
			}
		}, false, safety.Suspicious},
		"half of the machines": {func(in *safety.Observation) { in.Machines.Items = in.Machines.Items[:5] }, false, safety.Suspicious},
		"no machine at all":    {func(in *safety.Observation) { in.Machines.Items = nil }, false, safety.Suspicious},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pool(10)
			in := withSides(w.at(late), left)
			tc.change(&in)
			s, _ := safety.Step(old, withSides(w.at(start), left), safety.DefaultPolicy(), start)
			_, d := safety.Step(s, in, safety.DefaultPolicy(), late.Add(1))
			require.Equal(t, tc.deleted, len(d.Actions) > 0, d)
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
	w, state, now := pool(20), old, start
	var deleted []time.Time
	gone := map[string]bool{}
	for now.Before(start.Add(19 * time.Hour)) {
		in := withSides(w.at(now))
		in.Listings[0].SideResources.Items = slices.DeleteFunc(in.Listings[0].SideResources.Items, func(r driver.SideResource) bool { return gone[r.MachineName] })
		lost := int(now.Sub(start).Hours())
		in.Machines.Items, in.Listings[0].VMs.Items = in.Machines.Items[lost:], in.Listings[0].VMs.Items[lost:]
		var d safety.Decision[machinist.Action]
		state, d = safety.Step(state, in, safety.DefaultPolicy(), now)
		for _, a := range d.Actions {
			side, ok := a.(safety.DeleteSideResource)
			require.True(t, ok)
			gone[side.Resource.MachineName], deleted = true, append(deleted, now)
		}
		now = d.NextCheck
	}
	require.Len(t, deleted, 4)
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
	node := func(name, providerID string, labels map[string]string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
			Spec:       corev1.NodeSpec{ProviderID: providerID},
		}
	}
	left := node("left", id("gone"), nil)
	for name, tc := range map[string]struct {
		node   *corev1.Node
		change func(in *safety.Observation)
		held   bool
	}{
		"neither machine nor VM":          {node: left, held: true},
		"no provider ID":                  {node: node("left", "", nil)},
		"of another provider":             {node: node("left", "other:///zone/gone", nil)},
		"the ID of a machine":             {node: node("x", id("m003"), nil)},
		"the ID of a VM without machine":  {node: node("x", "cloud:////zone/lost", nil)},
		"the label of a machine":          {node: node("x", id("gone"), map[string]string{v1alpha1.MachineNameLabelKey: "m003"})},
		"the label of a lost machine":     {node: node("x", id("gone"), map[string]string{v1alpha1.MachineNameLabelKey: "gone"}), held: true},
		"a machine that names it":         {node: node("node-5", id("gone"), nil)},
		"younger than the listing":        {node: func() *corev1.Node { n := left.DeepCopy(); n.CreationTimestamp = metav1.NewTime(start); return n }()},
		"nil":                             {},
		"Nodes that were not all read":    {node: left, change: func(in *safety.Observation) { in.Nodes.Complete = false }},
		"Nodes read long ago":             {node: left, change: func(in *safety.Observation) { in.Nodes.AsOf = start.Add(-time.Hour) }},
		"a listing that failed":           {node: left, change: func(in *safety.Observation) { in.Listings[0].VMs.Complete = false }},
		"another class that failed":       {node: left, change: func(in *safety.Observation) { in.Classes = append(in.Classes, types.NamespacedName{Name: "other"}) }},
		"no classes":                      {node: left, change: func(in *safety.Observation) { in.Classes = nil }},
		"machines that were not all read": {node: left, change: func(in *safety.Observation) { in.Machines.Complete = false }},
		"a listing without any VM":        {node: left, change: func(in *safety.Observation) { in.Listings[0].VMs.Items = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pool(10)
			w.vms = append(w.vms, vm("lost"))
			w.machines[5].Labels = map[string]string{v1alpha1.NodeLabelKey: "node-5"}
			in := w.at(start)
			in.Classes = []types.NamespacedName{in.Listings[0].Class}
			in.Nodes = drain.List[*corev1.Node]{Items: []*corev1.Node{tc.node}, AsOf: start, Complete: true}
			if tc.change != nil {
				tc.change(&in)
			}
			_, d := safety.Step(old, in, safety.DefaultPolicy(), start)
			require.Equal(t, tc.held, slices.Contains(reasons(d), safety.NodeWithoutVM), d)
			require.Empty(t, d.Actions)
		})
	}
	w := pool(10)
	in := w.at(start)
	in.Classes = []types.NamespacedName{in.Listings[0].Class}
	in.Nodes = drain.List[*corev1.Node]{Items: []*corev1.Node{left}, AsOf: start, Complete: true}
	_, d := safety.Step(old, in, safety.DefaultPolicy(), start)
	require.Equal(t, []machinist.Hold{{
		Subject: "node/left", Reason: safety.NodeWithoutVM, Until: start.Add(15 * time.Minute),
		Message: "provider ID cloud:///zone/gone is in no machine and in none of 1 listings; delete the Node if its VM does not exist",
	}}, d.Holds)
}
