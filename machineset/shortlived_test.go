// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestMS6MachinesThatDoNotLiveAreReplacedOnlyAsLongAsFewAreOnTheirWayOut(t *testing.T) {
	lived := func(d time.Duration) func(i int) *v1alpha1.Machine {
		return func(i int) *v1alpha1.Machine {
			m := newMachine(fmt.Sprintf("m%02d", i), v1alpha1.MachineTerminating)
			m.DeletionTimestamp = deletedNow()
			m.CreationTimestamp = metav1.NewTime(m.DeletionTimestamp.Add(-d))
			return m
		}
	}
	for name, c := range map[string]struct {
		desired, leaving int
		machine          func(int) *v1alpha1.Machine
		policy           machineset.Policy
		created          int
	}{
		"all of a set may be replaced at once":                    {5, 5, lived(time.Second), machineset.Policy{}, 5},
		"but not twice":                                           {5, 10, lived(time.Second), machineset.Policy{}, 0},
		"in between, some of them":                                {5, 8, lived(time.Second), machineset.Policy{}, 2},
		"a set of one replaces as many as it releases":            {1, machineset.DefaultReplaced, lived(time.Second), machineset.Policy{}, 1},
		"and no more":                                             {1, machineset.DefaultReplaced + 1, lived(time.Second), machineset.Policy{}, 0},
		"one that replaces none keeps to what it wants":           {1, 2, lived(time.Second), machineset.Policy{Replaced: -1}, 0},
		"machines that lived for long enough are always replaced": {5, 50, lived(machineset.ShortLife), machineset.Policy{}, 5},
		"a set that wants nothing has nobody to replace":          {0, 9, lived(0), machineset.Policy{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := machineset.Observation{Set: newSet(int32(c.desired)), Complete: true}
			for i := range c.leaving {
				in.Machines = append(in.Machines, c.machine(i))
			}
			d := machineset.Plan(in, c.policy, now)
			require.Equal(t, c.created, created(d), d.String())
			require.True(t, d.NextCheck.After(now) || c.desired == 0, "it is looked at again")
			if c.created == c.desired {
				return
			}
			require.Contains(t, d.Holds, machinist.Hold{
				Subject: "m00", Reason: machineset.ReasonShortLived,
				Message: fmt.Sprintf("%d of %d missing machines are not created: %d that were deleted within 10m0s of their creation are still there", c.desired-c.created, c.desired, c.leaving),
			})
		})
	}
}
