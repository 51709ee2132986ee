// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// shortLife is how long machines live that are replaced without a bound.
const shortLife = 10 * time.Minute

// TestDecide_ShortLivedMachines_BoundedCreations asserts that a set of ten machines has at most
// twenty, including those that failed early.
func TestDecide_ShortLivedMachines_BoundedCreations(t *testing.T) {
	for name, c := range map[string]struct {
		desired, present, asked, leaving int
		lived                            time.Duration
		created                          int
	}{
		"all may be replaced at once":                {5, 0, 0, 5, time.Second, 5},
		"but not twice":                              {5, 0, 0, 10, time.Second, 0},
		"in between, some of them":                   {5, 0, 0, 8, time.Second, 2},
		"a set of one replaces three":                {1, 0, 0, 3, time.Second, 1},
		"and no more":                                {1, 0, 0, 4, time.Second, 0},
		"machines that lived for long enough":        {5, 0, 0, 50, shortLife, 5},
		"a set that wants nothing":                   {0, 0, 0, 9, 0, 0},
		"those that are there have their place":      {10, 7, 0, 12, time.Second, 1},
		"those that are asked for have theirs":       {10, 0, 7, 12, time.Second, 1},
		"both":                                       {10, 4, 3, 12, time.Second, 1},
		"there is room for all":                      {10, 4, 3, 10, time.Second, 3},
		"nothing is said of a set that has them all": {10, 10, 0, 30, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := machineset.Observation{Set: newSet(int32(c.desired)), Complete: true, Proven: true} //nolint:gosec // small
			for i := range c.present {
				in.Machines = append(in.Machines, newMachine(fmt.Sprintf("a%02d", i), v1alpha1.MachineRunning))
			}
			for i := range c.asked {
				in.Expectations = in.Expectations.Creating(machine.KindMachine, fmt.Sprintf("b%02d", i), now)
			}
			for i := range c.leaving {
				m := newMachine(fmt.Sprintf("c%02d", i), v1alpha1.MachineTerminating)
				m.DeletionTimestamp = deletedNow()
				m.CreationTimestamp = metav1.NewTime(m.DeletionTimestamp.Add(-c.lived))
				in.Machines = append(in.Machines, m)
			}
			d := machineset.Decide(in, machineset.Policy{}, now)
			require.Equal(t, c.created, created(d), d.String())
			missing := c.desired - c.present - c.asked
			limited := machinist.Hold{
				Subject: "machine/c00", Reason: machineset.ReasonLimited,
				Message: fmt.Sprintf("%d of %d missing machines are not created: %d machines that were deleted within 10m0s of their creation still exist", missing-c.created, missing, c.leaving),
			}
			if c.created < missing {
				require.True(t, d.NextCheck.After(now))
				require.Contains(t, d.Holds, limited)
			} else {
				require.NotContains(t, d.String(), "Limited")
			}
		})
	}
}
