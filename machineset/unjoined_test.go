// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// failingSet plays a set of eight whose machines all fail before they join, and are gone
// the moment they are deleted. The API server's clock is ahead of the set's.
func failingSet(t *testing.T, ahead, lasts time.Duration) (created, passes int) {
	t.Helper()
	var expected machine.Expectations
	var unjoined machineset.NeverJoined
	machines, end, at := map[string]*v1alpha1.Machine{}, now.Add(lasts), now
	for at.Before(end) {
		in := machineset.Observation{Set: newSet(8), Complete: true, Proven: true}
		for _, m := range machines {
			in.Machines = append(in.Machines, m)
		}
		expected = expected.Observe(named(in.Machines), true)
		in.Expectations, in.NeverJoined = expected, unjoined
		d := machineset.Decide(in, machineset.Policy{}, at)
		require.True(t, d.NextCheck.After(at), d.String())
		passes++
		for _, a := range d.Actions {
			switch a := a.(type) {
			case machinist.Create:
				for range a.Count {
					created++
					m := newMachine(fmt.Sprintf("m%04d", created), v1alpha1.MachineFailed)
					m.UID, m.CreationTimestamp = types.UID(m.Name), metav1.NewTime(at.Add(ahead))
					m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed}
					expected = expected.Creating(machine.KindMachine, m.Name, at)
					machines[m.Name] = m
				}
			case machinist.Delete:
				m := a.Object.(*v1alpha1.Machine)
				expected, unjoined = expected.Deleting(machine.KindMachine, m.Name, m.UID, at), unjoined.Deleting(a, at)
				delete(machines, m.Name)
			}
		}
		if len(d.Actions) > 0 {
			at = at.Add(100 * time.Millisecond) // its own writes wake it
		} else {
			at = d.NextCheck
		}
	}
	return created, passes
}

func TestDecide_MachinesNeverJoin_BoundedCreations(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * time.Second, 30 * time.Minute, -3 * time.Second, -30 * time.Minute} {
		t.Run(fmt.Sprintf("API server %s ahead", ahead), func(t *testing.T) {
			created, passes := failingSet(t, ahead, time.Minute)
			require.Equal(t, 16, created, "as many as are wanted, and as many again")
			require.Less(t, passes, 20)
			created, passes = failingSet(t, ahead, time.Hour+time.Minute)
			require.LessOrEqual(t, created, 16*7)
			require.Greater(t, created, 16*5, "but it goes on")
			require.Less(t, passes, 200)
		})
	}
}

func TestDecide_MachinesFailAfterJoin_AllReplaced(t *testing.T) {
	var unjoined machineset.NeverJoined
	for i := range 50 {
		unjoined = unjoined.Deleting(machinist.Delete{Object: newMachine(fmt.Sprint(i), v1alpha1.MachineFailed), Reason: machineset.ReasonFailed}, now)
	}
	d := machineset.Decide(machineset.Observation{Set: newSet(5), Complete: true, Proven: true, NeverJoined: unjoined}, machineset.Policy{}, now)
	require.Equal(t, 5, created(d), d.String())
}

// unjoinedDeletion returns the deletion of a machine that failed before its Node joined.
func unjoinedDeletion(name string) machinist.Delete {
	m := newMachine(name, v1alpha1.MachineFailed)
	m.Status.LastOperation.Type = v1alpha1.MachineOperationCreate
	return machinist.Delete{Object: m, Reason: machineset.ReasonFailed}
}

func TestNeverJoined_Deleting_CopyWithoutOldEntries(t *testing.T) {
	n := machineset.NeverJoined(nil).Deleting(unjoinedDeletion("a"), now)
	require.Equal(t, machineset.NeverJoined{"uid-a": now}, n)
	expired, surplus, joined := unjoinedDeletion("b"), unjoinedDeletion("b"), unjoinedDeletion("b")
	expired.Reason = machineset.ReasonPreservationOver
	require.Len(t, n.Deleting(expired, now), 2)
	surplus.Reason = machineset.ReasonTooMany
	require.Equal(t, n, n.Deleting(surplus, now), "no machine replaces it")
	joined.Object.(*v1alpha1.Machine).Status.LastOperation.Type = v1alpha1.MachineOperationHealthCheck
	require.Equal(t, n, n.Deleting(joined, now))
	require.Equal(t, n, n.Deleting(machinist.Delete{}, now))
	require.Empty(t, n.Deleting(joined, now.Add(shortLife)))
	require.Len(t, n, 1, "the receiver is a value")
}

func TestDecide_NeverJoinedStillPresent_CountsOnce(t *testing.T) {
	in := machineset.Observation{Set: newSet(2), Machines: []*v1alpha1.Machine{newMachine("a", v1alpha1.MachineRunning)}, Complete: true, Proven: true}
	in.NeverJoined = machineset.NeverJoined{"uid-a": now, "uid-b": now}
	require.Equal(t, 1, created(machineset.Decide(in, machineset.Policy{}, now)))
}
