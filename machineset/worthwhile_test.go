// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A set that wants ten machines has at most twenty, those included that did not live.
func TestMS6MachinesThatAreThereOrAskedForLeaveLessRoomForOthersThatMayNotLive(t *testing.T) {
	for name, c := range map[string]struct{ present, asked, shortLived, created int }{
		"none are there":                           {0, 0, 16, 4},
		"those that are there have their place":    {7, 0, 12, 1},
		"those that are asked for have theirs":     {0, 7, 12, 1},
		"both":                                     {4, 3, 12, 1},
		"there is room for all":                    {4, 3, 10, 3},
		"far too many have gone":                   {4, 3, 30, 0},
		"nothing is told of a set that has it all": {10, 0, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := machineset.Observation{Set: newSet(10), Complete: true}
			for i := range c.present {
				in.Machines = append(in.Machines, newMachine(fmt.Sprintf("a%02d", i), v1alpha1.MachineRunning))
			}
			for i := range c.asked {
				in.Expectations = in.Expectations.Creating(machine.KindMachine, fmt.Sprintf("b%02d", i), now)
			}
			for i := range c.shortLived {
				m := newMachine(fmt.Sprintf("c%02d", i), v1alpha1.MachineTerminating)
				m.DeletionTimestamp = deletedNow()
				m.CreationTimestamp = metav1.NewTime(m.DeletionTimestamp.Add(-time.Second))
				in.Machines = append(in.Machines, m)
			}
			d := machineset.Plan(in, machineset.Policy{}, now)
			require.Equal(t, c.created, created(d), d.String())
			missing, told := 10-c.present-c.asked, ""
			for _, h := range d.Holds {
				if h.Reason == machineset.ReasonShortLived {
					told = h.Message
				}
			}
			if c.created == missing {
				require.Empty(t, told)
				return
			}
			require.Equal(t, fmt.Sprintf("%d of %d missing machines are not created: %d that were deleted within 10m0s of their creation are still there", missing-c.created, missing, c.shortLived), told)
		})
	}
}

func TestWhatSeveralSetsMissIsAddedUp(t *testing.T) {
	a, b := newSet(2), newSet(3)
	b.UID = "uid-other"
	require.Equal(t, 4, machineset.Missing([]*v1alpha1.MachineSet{a, b}, []*v1alpha1.Machine{newMachine("m", v1alpha1.MachineRunning)}))
}
