// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/safety"
)

// trouble is a failure in a schedule.
type trouble string

const (
	lostMachine  trouble = "a machine is lost and its VM is not"
	lostAnswer   trouble = "the answer to a creation is lost"
	secondVM     trouble = "a creation makes a second VM"
	leftover     trouble = "a creation leaves a disk"
	emptyListing trouble = "the provider lists nothing"
	halfListing  trouble = "the provider lists half"
	foreignList  trouble = "the provider lists another account"
	failedList   trouble = "the provider fails"
	staleList    trouble = "the provider lists what was before"
	decay        trouble = "the list of machines decays"
	halfMachines trouble = "half of the machines are not shown"
	noMachines   trouble = "no machine is shown"
	restart      trouble = "the state is lost"
	stored       trouble = "the state is stored and read"
	crash        trouble = "the controller ends before it deletes"
)

var troubles = []trouble{
	lostMachine, lostAnswer, secondVM, leftover, emptyListing, halfListing, foreignList, failedList, staleList, decay, halfMachines, noMachines, restart, stored, crash,
}

// schedule is a small world with random failures, and without any once it is calm.
type schedule struct {
	t        testing.TB
	r        *rand.Rand
	now      time.Time
	machines map[string]*v1alpha1.Machine // that truly exist
	vms      map[string]safety.VM         // that truly exist, by provider ID
	disks    map[string]driver.SideResource
	hidden   map[string]bool // machines that the list does not show
	blind    bool            // the API server does not show them by name either
	calm     bool
	before   []safety.VM // of the last listing
	made     int

	state   safety.State
	policy  safety.Policy
	count   map[trouble]int
	deleted map[machinist.Reason]int
	wrong   []time.Time // deletions of VMs that have an owner
}

func newSchedule(t testing.TB, seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 5))
	s := &schedule{
		t: t, r: r, now: start, machines: map[string]*v1alpha1.Machine{}, vms: map[string]safety.VM{}, disks: map[string]driver.SideResource{}, hidden: map[string]bool{},
		policy: safety.DefaultPolicy(), count: map[trouble]int{}, deleted: map[machinist.Reason]int{}, blind: seed%4 == 0,
	}
	for range 3 + r.IntN(12) {
		s.order()
	}
	for _, m := range sortedByKey(s.machines) {
		s.adopt(m)
	}
	return s
}

func (s *schedule) order() *v1alpha1.Machine {
	s.made++
	name := fmt.Sprintf("m%03d", s.made)
	if again := fmt.Sprintf("m%03d", s.r.IntN(s.made)); s.r.IntN(20) == 0 && s.machines[again] == nil {
		name = again // of a machine that was deleted, perhaps
	}
	m := machine("shoot", name, "")
	m.Spec.Class.Name, m.UID = small.Name, types.UID(fmt.Sprint(s.made))
	s.machines[m.Name] = m
	return m
}

// sortedByKey returns the values of a map in the order of their keys.
func sortedByKey[V any](all map[string]V) (out []V) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[key])
	}
	return out
}

func (s *schedule) vm(name string) string {
	s.made++
	id := fmt.Sprintf("cloud:///zone/%s-%d", name, s.made)
	s.vms[id] = safety.VM{ProviderID: id, MachineName: name}
	s.disks[id] = driver.SideResource{Kind: "disk", ID: id, MachineName: name, ProviderID: id}
	return id
}

// happen makes one random failure.
func (s *schedule) happen() {
	all := sortedByKey(s.machines)
	m := oneOf(s.r, all...)
	what := troubles[s.r.IntN(len(troubles))]
	switch what {
	case lostMachine:
		if len(all) <= 3 || s.r.IntN(3) > 0 {
			return
		}
		delete(s.machines, m.Name)
	case lostAnswer: // the machine controller finds it later
		s.vm(s.order().Name)
	case secondVM:
		s.vm(m.Name)
	case leftover:
		s.made++
		left := fmt.Sprint("left-", s.made)
		s.disks[left] = disk(left, "")
	case decay:
		s.hidden[m.Name] = true
	default:
		for _, m := range all {
			if m.Spec.ProviderID == "" && s.r.IntN(2) == 0 {
				s.adopt(m)
			}
		}
		if len(s.hidden) > 0 && s.r.IntN(4) == 0 {
			clear(s.hidden)
		}
		return
	}
	s.count[what]++
}

// adopt records the VM of a machine, or makes one.
func (s *schedule) adopt(m *v1alpha1.Machine) {
	for _, v := range sortedByKey(s.vms) {
		if v.MachineName == m.Name {
			m.Spec.ProviderID = v.ProviderID
			return
		}
	}
	m.Spec.ProviderID = s.vm(m.Name)
}

// look returns the observation of a scan with its failures.
func (s *schedule) look() safety.Observation {
	in := withSides(world{}.at(s.now), sortedByKey(s.disks)...)
	l := &in.Listings[0]
	l.VMs.Items = sortedByKey(s.vms)
	before := s.before
	s.before = slices.Clone(l.VMs.Items)
	in.Machines.Items = slices.DeleteFunc(sortedByKey(s.machines), func(m *v1alpha1.Machine) bool { return s.hidden[m.Name] })
	if s.calm {
		return in
	}
	what := troubles[s.r.IntN(len(troubles))]
	switch what {
	case emptyListing:
		l.VMs.Items = nil
	case halfListing:
		l.VMs.Items = without(s.r, l.VMs.Items, 0.5)
	case foreignList:
		l.VMs.Items, l.SideResources.Items = foreign(1+s.r.IntN(4)), nil
	case failedList:
		l.VMs.Complete = false
	case staleList:
		l.VMs.Items = before
	case halfMachines:
		in.Machines.Items = without(s.r, in.Machines.Items, 0.5)
	case noMachines:
		in.Machines.Items = nil
	default:
		return in
	}
	s.count[what]++
	return in
}

// scan runs one pass of the controller.
func (s *schedule) scan() {
	in, before, at := s.look(), s.state, s.now
	var d safety.Decision[machinist.Action]
	s.state, d = safety.Step(s.state, in, s.policy, s.now)
	s.restartOrStore()
	s.now = d.NextCheck
	for _, action := range d.Actions {
		if !s.calm && s.r.IntN(8) == 0 {
			s.count[crash]++
			return
		}
		switch a := action.(type) {
		case safety.DeleteVM:
			checkAction(s.t, before, in, a, s.policy, at)
			s.deleteVM(a)
		case safety.DeleteSideResource:
			s.deleteSide(in, a)
		}
	}
}

func (s *schedule) restartOrStore() {
	switch s.r.IntN(40) {
	case 0:
		if !s.blind && !s.calm { // whose bound is that of one life of the state
			s.state = safety.State{}
			s.count[restart]++
		}
	case 1:
		text, err := json.Marshal(s.state)
		require.NoError(s.t, err)
		s.state = safety.State{}
		require.NoError(s.t, json.Unmarshal(text, &s.state))
		s.count[stored]++
	}
}

// live returns the machine with a name as the API server returns it.
func (s *schedule) live(name string) *v1alpha1.Machine {
	if s.blind && s.hidden[name] {
		return nil
	}
	return s.machines[name]
}

func (s *schedule) deleteVM(a safety.DeleteVM) {
	if !a.StillValid(s.live(a.MachineName)) {
		return
	}
	m := s.machines[a.MachineName]
	if m != nil && (m.Spec.ProviderID == "" || nodeops.NormalizeProviderID(m.Spec.ProviderID) == nodeops.NormalizeProviderID(a.ProviderID)) {
		require.True(s.t, s.blind, "%s has an owner", a)
		s.wrong = append(s.wrong, s.now)
	}
	require.NotContains(s.t, a.ProviderID, "foreign", "%s is of another account", a)
	s.deleted[a.Reason]++
	delete(s.vms, a.ProviderID)
	delete(s.disks, a.ProviderID)
}

func (s *schedule) deleteSide(in safety.Observation, a safety.DeleteSideResource) {
	if !a.StillValid(s.live(a.Resource.MachineName)) {
		return
	}
	if _, exists := s.vms[a.Resource.ProviderID]; exists {
		return // the driver refuses
	}
	require.True(s.t, s.blind || s.machines[a.Resource.MachineName] == nil, "%s has an owner", a)
	for _, v := range in.Listings[0].VMs.Items {
		require.NotEqual(s.t, a.Resource.ProviderID, v.ProviderID, "%s has a VM", a)
	}
	s.deleted[a.Reason]++
	maps.DeleteFunc(s.disks, func(_ string, r driver.SideResource) bool { return r == a.Resource })
}

// settle ends all failures, and runs passes until each VM has its machine and each disk a machine.
func (s *schedule) settle() {
	s.calm, s.policy.MaxPercent = true, 100 // so many VMs may be left that all are held until a user decides
	clear(s.hidden)
	for _, m := range sortedByKey(s.machines) {
		if m.Spec.ProviderID == "" {
			s.adopt(m)
		}
		if _, exists := s.vms[m.Spec.ProviderID]; !exists {
			delete(s.machines, m.Name) // it fails, and is deleted
		}
	}
	left := func(r driver.SideResource) bool { return s.machines[r.MachineName] == nil }
	for scans := 0; ; scans++ {
		rest := !slices.ContainsFunc(slices.Collect(maps.Values(s.disks)), left)
		for id, v := range s.vms {
			rest = rest && s.machines[v.MachineName] != nil && s.machines[v.MachineName].Spec.ProviderID == id
		}
		if rest {
			return
		}
		require.Less(s.t, scans, 1000, "VMs or disks without a machine are left: %v %v", s.vms, s.disks)
		s.scan()
	}
}

// scheduleCount is the number of schedules of TestStep_Schedules_DeleteEveryOrphanAndNoOwnedVM. For a
// long run use: go test ./safety -run Schedules -safety.schedules 20000.
var scheduleCount = flag.Int("safety.schedules", 2000, "number of schedules with random failures")

// TestStep_Schedules_DeleteEveryOrphanAndNoOwnedVM runs schedules in which the listing and the list of
// machines are wrong at times. While the API server returns each existing machine, no VM and
// no side resource with an owner is deleted. In a quarter of the schedules the API server does
// not return the machines that the list lacks. Then at most the share of a day is deleted. At the
// end, without failures, every VM and side resource without an owner is deleted.
func TestStep_Schedules_DeleteEveryOrphanAndNoOwnedVM(t *testing.T) {
	t.Parallel()
	schedules := *scheduleCount
	total, deleted, wrong := map[trouble]int{}, map[machinist.Reason]int{}, 0
	for seed := range uint64(schedules) {
		s := newSchedule(t, seed)
		most := len(s.vms)
		for range 30 {
			for range s.r.IntN(3) {
				s.happen()
			}
			most = max(most, len(s.vms))
			s.scan()
		}
		s.settle()
		c := collector{deleted: s.wrong}
		require.LessOrEqual(t, c.mostInADay(), max(1, most*s.policy.MaxPercent/100), "seed %d", seed)
		addAll(total, s.count)
		addAll(deleted, s.deleted)
		wrong += len(s.wrong)
	}
	t.Logf("%d schedules; deleted: %v, of these %d of machines that the API server had lost", schedules, deleted, wrong)
	for _, what := range troubles {
		t.Logf("%6d times %s", total[what], what)
		require.Greater(t, total[what], schedules/20, what)
	}
	for _, reason := range []machinist.Reason{safety.NoMachine, safety.SecondVM, safety.Leftover} {
		require.Greater(t, deleted[reason], schedules/100, reason)
	}
}

// addAll adds counts to a total.
func addAll[K comparable](total, counts map[K]int) {
	for key, n := range counts {
		total[key] += n
	}
}

// creation has two machines under creation and the deletion of orphans.
type creation struct {
	now      time.Time
	state    safety.State
	vms      []safety.VM
	recorded [2]string // provider IDs
	proposed int
}

// creationSteps are the possible next steps.
var creationSteps = []string{"create a", "create b", "crash a", "crash b", "retry a", "retry b", "collect"}

// creator returns the name of a machine.
func creator(i int) string { return string(rune('a' + i)) }

func (c *creation) vm(i int) string {
	v := safety.VM{ProviderID: id(fmt.Sprintf("%s-%d", creator(i), len(c.vms))), MachineName: creator(i)}
	c.vms = append(slices.Clone(c.vms), v)
	return v.ProviderID
}

// do runs a step and reports whether it was possible.
func (c *creation) do(t testing.TB, step string) bool {
	t.Helper()
	if step == "collect" {
		c.collect(t)
		return true
	}
	i := int(step[len(step)-1] - 'a')
	if c.recorded[i] != "" {
		return false
	}
	switch step[:len(step)-2] {
	case "create": // whatever there is already: the search did not show it
		c.recorded[i] = c.vm(i)
	case "crash": // after the VM was made
		c.vm(i)
	case "retry": // finds what was made
		k := slices.IndexFunc(c.vms, func(v safety.VM) bool { return v.MachineName == creator(i) })
		if k < 0 {
			return false
		}
		c.recorded[i] = c.vms[k].ProviderID
	}
	return true
}

func (c *creation) collect(t testing.TB) {
	t.Helper()
	c.now = c.now.Add(11 * time.Minute)
	w := world{vms: c.vms}.with(machine("shoot", "other", "cloud:///zone/other"))
	for i, id := range c.recorded {
		w = w.with(machine("shoot", creator(i), id))
	}
	policy := safety.DefaultPolicy()
	policy.MaxPercent = 100 // nothing but the owner protects
	var d safety.Decision[machinist.Action]
	c.state, d = safety.Step(c.state, w.at(c.now), policy, c.now)
	for _, action := range d.Actions {
		a, ok := action.(safety.DeleteVM)
		require.True(t, ok)
		own := c.recorded[a.MachineName[0]-'a']
		require.NotEmpty(t, own, "%s may yet be recorded", a)
		require.NotEqual(t, own, a.ProviderID, "%s is recorded", a)
		c.vms = slices.DeleteFunc(slices.Clone(c.vms), func(v safety.VM) bool { return v.ProviderID == a.ProviderID })
		c.proposed++
	}
}

// TestStep_EveryInterleavingOfTwoCreations_NoOwnedVMIsDeleted tries every
// sequence of eight steps.
func TestStep_EveryInterleavingOfTwoCreations_NoOwnedVMIsDeleted(t *testing.T) {
	t.Parallel()
	sequences, proposed := 0, 0
	var try func(c creation, left int)
	try = func(c creation, left int) {
		if left == 0 {
			sequences++
			proposed += c.proposed
			return
		}
		for _, step := range creationSteps {
			if next := c; next.do(t, step) {
				try(next, left-1)
			}
		}
	}
	try(creation{now: start}, 8)
	t.Logf("%d sequences, %d deletions of second VMs", sequences, proposed)
	require.Greater(t, sequences, 10_000)
	require.Greater(t, proposed, 1000)
}
