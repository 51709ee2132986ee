// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// sim has a cloud with a lag, a store of machines, a machine controller that crashes at any
// step, and the loop of the package comment.
type sim struct {
	t     *testing.T
	r     *rand.Rand
	fake  *clocktesting.FakeClock
	cloud *drivertest.Cloud
	class *v1alpha1.MachineClass
	store map[string]*v1alpha1.Machine
	born  int

	state   safety.State
	policy  safety.Policy
	next    time.Time
	calm    bool            // no faults, no lies
	hidden  map[string]bool // machines that the API server has not got back yet
	deleted map[machinist.Reason]int
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), fake: clocktesting.NewFakeClock(start), store: map[string]*v1alpha1.Machine{},
		policy: safety.DefaultPolicy(), deleted: map[machinist.Reason]int{}, hidden: map[string]bool{},
	}
	s.cloud = drivertest.NewCloud(drivertest.CloudOptions{
		Clock: s.fake, Lag: time.Minute, ShutdownTime: 3 * time.Minute, ForgetfulCreate: true, Seed: seed,
		Faults: []drivertest.Fault{
			{Operation: driver.OpListMachines, Probability: 0.2},
			{Operation: driver.OpCreateMachine, Probability: 0.1, Kind: drivertest.LoseResponse},
			{Operation: driver.OpDeleteMachine, Probability: 0.2, Kind: drivertest.Partial},
			{Operation: driver.OpDeleteMachine, Probability: 0.1},
		},
	})
	s.class = s.cloud.MachineClass("shoot", "small")
	for range 30 {
		s.order()
	}
	return s
}

func (s *sim) name(i int) string { return fmt.Sprintf("machine-%03d", i) }

// order adds a machine to the store.
func (s *sim) order() {
	s.born++
	name := s.name(s.born)
	if s.r.IntN(20) == 0 { // a name is used again
		name = s.name(1 + s.r.IntN(s.born))
	}
	if s.store[name] == nil {
		m := machine("shoot", name, "")
		m.UID = types.UID(fmt.Sprint(s.born))
		s.store[name] = m
	}
}

// live makes one step of a machine, which may fail.
func (s *sim) live(m *v1alpha1.Machine) {
	secret := s.cloud.Secret("shoot", "small")
	switch {
	case m.Labels["going"] != "":
		_, err := s.cloud.DeleteMachine(s.t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: s.class, Secret: secret})
		if err == nil || codes.Of(err) == codes.NotFound {
			delete(s.store, m.Name)
		}
	case m.Spec.ProviderID == "":
		response, err := s.cloud.CreateMachine(s.t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: s.class, Secret: secret})
		switch {
		case codes.Of(err) == codes.OutOfRange:
			s.leave(m)
		case err == nil && (s.calm || s.r.IntN(4) > 0): // otherwise it crashes before it has written the ID
			m.Spec.ProviderID = response.ProviderID
		}
	}
}

func (s *sim) leave(m *v1alpha1.Machine) { m.Labels = map[string]string{"going": "yes"} }

// churn makes random changes.
func (s *sim) churn() {
	all := slices.Sorted(maps.Keys(s.store))
	victim := s.store[all[s.r.IntN(len(all))]]
	switch s.r.IntN(250) {
	case 0, 1, 2:
		s.leave(victim)
		s.order()
	case 3, 4:
		delete(s.store, victim.Name) // a user removes the finalizer
		s.order()
	case 5:
		s.cloud.AddVM(drivertest.VM{Namespace: "shoot", Machine: victim.Name, Class: "small"})
	case 6: // restored from a backup, machine by machine
		for _, name := range all {
			if s.r.IntN(8) > 0 {
				s.hidden[name] = true
			}
		}
	}
	if s.r.IntN(2) == 0 {
		for _, name := range slices.Sorted(maps.Keys(s.hidden))[:min(1, len(s.hidden))] {
			delete(s.hidden, name)
		}
	}
}

func (s *sim) now() time.Time { return s.fake.Now() }

// get returns a machine as the API server does.
func (s *sim) get(name string) *v1alpha1.Machine {
	if s.hidden[name] {
		return nil
	}
	return s.store[name]
}

// collect runs the loop under test.
func (s *sim) collect() {
	secret := s.cloud.Secret("shoot", "small")
	response, err := s.cloud.ListMachines(s.t.Context(), &driver.ListMachinesRequest{MachineClass: s.class, Secret: secret})
	var vms map[string]string
	if response != nil {
		vms = response.MachineList
	}
	class := types.NamespacedName{Namespace: "shoot", Name: "small"}
	in := safety.Observation{Listings: []safety.Listing{safety.NewListing(class, vms, err, s.now())}, Namespace: "shoot"}
	in.Machines.AsOf, in.Machines.Complete = s.now(), s.calm || s.r.IntN(10) > 0
	for name := range s.store {
		if m := s.get(name); m != nil && (in.Machines.Complete || s.r.IntN(2) == 0) {
			in.Machines.Items = append(in.Machines.Items, m)
		}
	}
	var d safety.Decision[machinist.Action]
	s.state, d = safety.Step(s.state, in, s.policy, s.now())
	s.next = d.NextCheck
	require.True(s.t, s.next.After(s.now()))
	for _, action := range d.Actions {
		if !s.calm && s.r.IntN(10) == 0 { // a crash
			s.state, s.next = safety.State{}, s.now().Add(time.Minute)
			return
		}
		a, ok := action.(safety.DeleteVM)
		require.True(s.t, ok)
		if !a.StillValid(s.get(a.MachineName)) {
			continue
		}
		s.mayDelete(a)
		_, _ = s.cloud.DeleteMachine(s.t.Context(), &driver.DeleteMachineRequest{Machine: a.Machine(), MachineClass: s.class, Secret: secret})
	}
	if s.r.IntN(5) == 0 { // a restart with a stored state
		text, err := json.Marshal(s.state)
		require.NoError(s.t, err)
		s.state = safety.State{}
		require.NoError(s.t, json.Unmarshal(text, &s.state))
	}
}

// mayDelete fails if the VM belongs to an existing machine.
func (s *sim) mayDelete(a safety.DeleteVM) {
	s.deleted[a.Reason]++
	m := s.store[a.MachineName]
	require.False(s.t, m != nil && (m.Spec.ProviderID == "" || m.Spec.ProviderID == a.ProviderID), "%s is owned", a)
}

func (s *sim) run(d time.Duration) {
	for end := s.now().Add(d); s.now().Before(end); s.fake.Step(20 * time.Second) {
		if !s.calm {
			s.churn()
		}
		for _, name := range slices.Sorted(maps.Keys(s.store)) {
			s.live(s.store[name])
		}
		if !s.now().Before(s.next) {
			s.collect()
		}
	}
}

func TestStep_Simulation_DeletesEveryOrphanAndNoOwnedVM(t *testing.T) {
	total := map[machinist.Reason]int{}
	for seed := range uint64(15) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSim(t, seed)
			s.run(8 * time.Hour)
			s.calm, s.hidden = true, nil
			unrest := s.deleted[safety.NoMachine]
			s.cloud.ClearFaults()
			// So many VMs may be left that all are held until a user decides.
			s.policy.MaxPercent = 100
			s.run(12 * time.Hour)
			for _, vm := range s.cloud.Snapshot().VMs {
				m := s.store[vm.Machine]
				require.True(t, m != nil && m.Spec.ProviderID == vm.ProviderID, "%s has no machine", vm)
			}
			total["unrest"] += unrest
			for reason, n := range s.deleted {
				total[reason] += n
			}
		})
	}
	require.Positive(t, total["unrest"])
	require.Positive(t, total[safety.NoMachine])
	require.Positive(t, total[safety.SecondVM])
	t.Log(total)
}
