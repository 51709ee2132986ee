// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// late is a time after the grace and before a record expires.
var late = start.Add(11 * time.Minute)

var small = types.NamespacedName{Namespace: "shoot", Name: "small"}

func machine(namespace, name, providerID string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name)},
		Spec:       v1alpha1.MachineSpec{ProviderID: providerID},
	}
}

func id(name string) string { return "cloud:///zone/" + name }

func vm(name string) safety.VM { return safety.VM{ProviderID: id(name), MachineName: name} }

// world has ten machines with their VMs and further objects.
type world struct {
	vms      []safety.VM
	machines []*v1alpha1.Machine
}

func newWorld(more ...safety.VM) world {
	var w world
	for i := range 10 {
		name := fmt.Sprintf("m%d", i)
		w.vms = append(w.vms, vm(name))
		w.machines = append(w.machines, machine("shoot", name, id(name)))
	}
	w.vms = append(w.vms, more...)
	return w
}

// at returns the complete observation of the world.
func (w world) at(t time.Time) safety.Observation {
	return safety.Observation{
		Listings:  []safety.Listing{{Class: small, VMs: drain.List[safety.VM]{Items: slices.Clone(w.vms), AsOf: t, Complete: true}}},
		Machines:  drain.List[*v1alpha1.Machine]{Items: slices.Clone(w.machines), AsOf: t, Complete: true},
		Namespace: safety.AllNamespaces,
	}
}

func names(d safety.Decision[machinist.Action]) (out []string) {
	for _, a := range d.Actions {
		if a, ok := a.(safety.DeleteVM); ok {
			out = append(out, a.MachineName)
		}
	}
	return out
}

func reasons(d safety.Decision[machinist.Action]) (out []machinist.Reason) {
	for _, h := range d.Holds {
		out = append(out, h.Reason)
	}
	return out
}

// twice returns the decision of the second of two steps.
func twice(first, second safety.Observation, p safety.Policy) safety.Decision[machinist.Action] {
	s, _ := safety.Step(safety.State{}, first, p, start)
	_, d := safety.Step(s, second, p, late)
	return d
}

// plain returns the actions without their messages.
func plain(d safety.Decision[machinist.Action]) (out []machinist.Action) {
	for _, a := range d.Actions {
		switch a := a.(type) {
		case safety.DeleteVM:
			a.Message = ""
			out = append(out, a)
		case safety.DeleteSideResource:
			a.Message = ""
			out = append(out, a)
		}
	}
	return out
}

// old is a state that is older than a day.
var old = safety.State{Since: start.Add(-25 * time.Hour)}
