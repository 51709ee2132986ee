// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// DD-49b: a status that differs in one letter of a long text differs, and is written.
func TestDD49bALongTextThatDiffersInOneLetterIsWritten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the quota of the project is used up; ", 6)
	in := after(intended, failure(driver.OpCreateMachine, codes.ResourceExhausted, time.Minute, machine.NotLooked))
	in.VM.Failure.Message = long + "a"
	u, ok := lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus)
	require.True(t, ok)
	in.Machine = u.Machine
	_, again := lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus)
	require.False(t, again, "the same text is written once")
	in.VM.Failure.Message = long + "b"
	u, ok = lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus)
	require.True(t, ok)
	require.Contains(t, u.Machine.Status.LastOperation.Description, long+"b")
}

// DD-56: a machine that has failed and waits for its owner keeps no other from being
// failed, wherever it stands among them.
func TestDD56AMachineThatWaitsForItsOwnerIsInNobodysWay(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, healthLast, inPool, siblings(true, v1alpha1.MachineFailed, v1alpha1.MachineFailed), held(1))
	for range 2 {
		u, ok := lawful(t, in, limited(3)).Do.(machine.UpdateStatus)
		require.True(t, ok)
		require.Equal(t, v1alpha1.MachineFailed, u.Machine.Status.CurrentStatus.Phase)
		slices.Reverse(in.Siblings.Machines)
	}
	failed := lawful(t, living(v1alpha1.MachineFailed, sick, copied, inPool), limited(3))
	require.Nil(t, failed.Do)
	require.Equal(t, machine.ReasonFailed, failed.Reason)
}

// DD-58 and DD-73: machines that are not well, and may yet recover, hold no other. Those
// that are being made or replaced do, as in the reference system.
func TestDD58AMachineThatIsOnlyDoubtedUsesUpNoLimit(t *testing.T) {
	t.Parallel()
	doubted := make([]v1alpha1.MachinePhase, 50)
	for i := range doubted {
		doubted[i] = v1alpha1.MachineUnknown
	}
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, healthLast, inPool, siblings(true, doubted...))
	require.Equal(t, machine.TakePermit{Key: "shoot/pool", Holder: string(in.Machine.UID), Within: 1}, lawful(t, in, limited(1)).Do)
	in = living(v1alpha1.MachineUnknown, longUnknown, sick, copied, healthLast, inPool, siblings(true, v1alpha1.MachinePending))
	require.Equal(t, machine.ReasonReplacementLimit, lawful(t, in, limited(1)).Reason, "one that is being made counts")
}

// DD-63: who waits for the limit writes nothing, and looks again after seconds.
func TestDD63AMachineThatWaitsForTheLimitIsNoHotLoop(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, copied, healthLast, inPool, siblings(true, v1alpha1.MachineFailed))
	for at := now; at.Before(now.Add(time.Hour)); {
		d := machine.Decide(in, limited(1), at)
		require.Nil(t, d.Do)
		require.Equal(t, machine.ReasonReplacementLimit, d.Reason)
		require.GreaterOrEqual(t, d.NextCheck.Sub(at), time.Second)
		at = d.NextCheck
	}
}

// DD-65: the time to join is counted from the creation. No change of status puts it off.
func TestDD65NoStatusPutsTheCreationTimeoutOff(t *testing.T) {
	t.Parallel()
	end := now.Add(15 * time.Minute)
	for _, changed := range []time.Duration{-time.Hour, -time.Minute, 0, time.Minute} {
		in := living(v1alpha1.MachinePending, intended, looked, spec(func(m *v1alpha1.Machine) {
			m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(changed))
			m.Status.LastOperation.LastUpdateTime = metav1.NewTime(now.Add(changed))
		}))
		waits := lawful(t, in, machine.DefaultPolicy())
		require.Len(t, waits.Holds, 1)
		require.Equal(t, end, waits.Holds[0].Until)
		in.Node.AsOf = end
		u, ok := machine.Decide(in, machine.DefaultPolicy(), end).Do.(machine.UpdateStatus)
		require.True(t, ok)
		require.Equal(t, v1alpha1.MachineFailed, u.Machine.Status.CurrentStatus.Phase)
	}
}

// DD-67: a Node that could not be looked for is not one that is gone.
func TestDD67WithoutALookAtTheNodeNothingIsDeletedOrDoubted(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		for _, long := range []change{func(*machine.Observation) {}, longUnknown} {
			in := living(p, long, siblings(true), func(in *machine.Observation) { in.Node = machine.NodeView{} })
			switch do := lawful(t, in, machine.DefaultPolicy()).Do.(type) {
			case machine.DeleteMachine, machine.DeleteVM, machine.DeleteNode, machine.DrainNode:
				require.Failf(t, "deleted", "%s: %s", p, do)
			case machine.UpdateStatus:
				after := do.Machine.Status.CurrentStatus.Phase
				require.True(t, after == p || p != v1alpha1.MachineRunning, "%s becomes %s", p, after)
			}
		}
	}
	in := living(v1alpha1.MachineUnknown, longUnknown, healthLast)
	_, ok := lawful(t, in, machine.DefaultPolicy()).Do.(machine.UpdateStatus)
	require.True(t, ok, "one that is not there is")
	in.Node = machine.NodeView{}
	d := lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Do)
	require.Equal(t, machine.ReasonNodeNotObserved, d.Reason)
}
