// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

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

func (c *creation) vm(i int) string {
	name := string(rune('a' + i))
	v := vm(fmt.Sprintf("%s-%d", name, len(c.vms)))
	v.MachineName = name
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
		k := slices.IndexFunc(c.vms, func(v safety.VM) bool { return v.MachineName == string(rune('a'+i)) })
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
	machines := []*v1alpha1.Machine{machine("shoot", "other", "cloud:///zone/other")}
	for i, id := range c.recorded {
		machines = append(machines, machine("shoot", string(rune('a'+i)), id))
	}
	policy := safety.DefaultPolicy()
	policy.MaxPercent = 100 // nothing but the owner protects
	var d safety.Decision[machinist.Action]
	c.state, d = safety.Step(c.state, world{vms: c.vms, machines: machines}.at(c.now), policy, c.now)
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
