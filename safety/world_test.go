// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// TestMain lets the heap grow: the simulations allocate much and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

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

// newNode returns a Node of a VM, created at a time.
func newNode(name, providerID string, created time.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(created)},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
	}
}

// labeled returns the Node with the label of a machine.
func labeled(n *corev1.Node, machine string) *corev1.Node {
	n.Labels = map[string]string{v1alpha1.MachineNameLabelKey: machine}
	return n
}

// seeNodes returns the observation with all Nodes, read when the machines were.
func seeNodes(in safety.Observation, nodes ...*corev1.Node) safety.Observation {
	in.Nodes = drain.List[*corev1.Node]{Items: nodes, AsOf: in.Machines.AsOf, Complete: true}
	return in
}

func id(name string) string { return "cloud:///zone/" + name }

func vm(name string) safety.VM { return safety.VM{ProviderID: id(name), MachineName: name} }

// world has machines with their VMs and further objects.
type world struct {
	vms      []safety.VM
	machines []*v1alpha1.Machine
}

// newWorld has ten machines of the class with their VMs, and further VMs.
func newWorld(more ...safety.VM) world {
	w := pool(10)
	w.vms = append(w.vms, more...)
	return w
}

// pool returns a world of n machines of the class with their VMs.
func pool(n int) (w world) {
	for i := range n {
		name := fmt.Sprint("m", i)
		m := machine("shoot", name, id(name))
		m.Spec.Class.Name = small.Name
		w.machines, w.vms = append(w.machines, m), append(w.vms, vm(name))
	}
	return w
}

// with returns the world with another machine.
func (w world) with(m *v1alpha1.Machine) world {
	w.machines = append(slices.Clone(w.machines), m)
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

// mixed returns a copy of a list in another order.
func mixed[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// old is a state that is older than a day.
var old = safety.State{Since: start.Add(-25 * time.Hour)}
