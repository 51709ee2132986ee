// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// unended is the error of every call while a call has not ended.
func unended(op driver.Operation) error {
	failure := &driver.AbandonedError{Call: driver.Call{Operation: op, Namespace: "shoot", Machine: "m", Start: now.Add(-10 * time.Minute)}}
	return status.WrapError(codes.DeadlineExceeded, "a text that may change", failure)
}

// unendedText is the text of that error, which is the same until the call ends.
func unendedText(op driver.Operation) string {
	return string(op) + ` of machine "shoot/m" has not ended since 2026-03-01T11:50:00Z although its time is over; no other call is made until it ends`
}

// refused is the result of a call that was not made because another one has not ended.
func refused(op, because driver.Operation) change {
	return func(in *machine.Observation) {
		in.VM = in.VM.After(machine.CallResult{Operation: op, Err: unended(because)}, now, 0)
	}
}

// recordedFailure is a last operation that failed.
func recordedFailure(typ v1alpha1.MachineOperationType, code, text string) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{Type: typ, State: v1alpha1.MachineStateFailed, Description: text, ErrorCode: code}
	})
}

func TestAbandonedCall_EachPhase_IsHeldAndNamed(t *testing.T) {
	const (
		create, look, remove = driver.OpCreateMachine, driver.OpGetMachineStatus, driver.OpDeleteMachine
		again                = ". However, will re-try in the next resync. "
		terminating          = v1alpha1.MachineTerminating
	)
	crashed := phase(v1alpha1.MachineCrashLoopBackOff)
	held := func(because driver.Operation) string {
		return "nothing (CallAbandoned: " + unendedText(because) + "); waits for provider: CallAbandoned: " + unendedText(because)
	}
	created := "Cloud provider message - " + unendedText(create)
	creating := recordedFailure(v1alpha1.MachineOperationCreate, "DeadlineExceeded", created)
	looking := "Getting VM status failed due to - " + unendedText(create) + again + v1alpha1.GetVMStatus
	deleting := "VM deletion failed due to - " + unendedText(remove) + again + v1alpha1.InitiateVMDeletion
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"creation: recorded":                  {after(intended, refused(create, create)), `update status of machine m: phase "CrashLoopBackOff", Create Failed (ProviderFailed: ` + created + `)`},
		"creation: held":                      {after(intended, refused(create, create), creating, crashed), held(create)},
		"creation: the next call, same text":  {after(intended, refused(look, create), creating, crashed), held(create)},
		"creation: not failed at its timeout": {after(intended, old, refused(look, create), creating, crashed), held(create)},

		"deletion: a creation is recorded, not the phase": {after(intended, leaving, refused(create, create), crashed), `update status of machine m: phase "CrashLoopBackOff", Delete Failed (CallAbandoned: ` + looking + `)`},
		"deletion: a creation is waited for":              {after(intended, leaving, refused(look, create), crashed, recordedFailure(v1alpha1.MachineOperationDelete, "", looking)), held(create)},
		"deletion: the class is missing":                  {after(intended, leaving, noTarget, refused(look, create), crashed, noClass), `update status of machine m: phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + `)`},
		"deletion: another call, begins":                  {after(intended, withID, leaving, noTarget, refused(look, look), phase(v1alpha1.MachinePending)), `update status of machine m: phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + `)`},
		"deletion: another call, recorded":                {living(terminating, noTarget, leaving, refused(remove, remove)), `update status of machine m: phase "Terminating", Delete Failed (CallAbandoned: ` + deleting + `)`},
		"deletion: another call, is waited for":           {living(terminating, noTarget, leaving, refused(remove, remove), recordedFailure(v1alpha1.MachineOperationDelete, "", deleting)), held(remove)},
		"deletion: the next call, same text":              {living(terminating, noTarget, leaving, refused(look, remove), recordedFailure(v1alpha1.MachineOperationDelete, "", deleting)), held(remove)},
	})
}

func TestAbandonedLookup_WhileNodeIsAwaited_IsHeldAndNamed(t *testing.T) {
	for phase, description := range map[v1alpha1.MachinePhase]string{
		v1alpha1.MachinePending: v1alpha1.CreatingMachine + ". " + unendedText(driver.OpGetMachineStatus),
		v1alpha1.MachineUnknown: "Machine m is unhealthy. " + unendedText(driver.OpGetMachineStatus),
	} {
		in := living(phase, withID, refused(driver.OpGetMachineStatus, driver.OpGetMachineStatus))
		in.Node.Node = nil
		d := lawful(t, in, machine.DefaultPolicy())
		m := statusOf(d.Action)
		require.NotNil(t, m, "%s: %s", phase, d)
		require.Equal(t, machine.ReasonCallAbandoned, d.Reason)
		require.Equal(t, description, m.Status.LastOperation.Description)
		require.Equal(t, phase, m.Status.CurrentStatus.Phase)
		in.Machine = m
		d = lawful(t, in, machine.DefaultPolicy())
		require.Nil(t, d.Action, d)
		require.Equal(t, machine.ReasonCallAbandoned, d.Holds[len(d.Holds)-1].Reason)
	}
}

// TestAbandonedCall_Ends_CreationContinues asserts that only the result of a call that was made
// ends the hold, and that the creation timeout counts then.
func TestAbandonedCall_Ends_CreationContinues(t *testing.T) {
	in := after(intended, old, refused(driver.OpGetMachineStatus, driver.OpCreateMachine))
	require.Equal(t, driver.OpCreateMachine, in.VM.Failure.Abandoned)
	d := machine.Decide(in, machine.DefaultPolicy(), now)
	in.Machine = written(d.Action)
	d = machine.Decide(in, machine.DefaultPolicy(), now)
	require.Nil(t, d.Action)
	require.True(t, d.NextCheck.After(now), "not at once")
	require.LessOrEqual(t, d.NextCheck.Sub(now), 3*time.Minute)
	at := d.NextCheck
	require.Equal(t, machine.CallDriver{Operation: driver.OpGetMachineStatus}, machine.Decide(in, machine.DefaultPolicy(), at).Action)

	in.VM = in.VM.After(machine.CallResult{Operation: driver.OpGetMachineStatus, Err: status.Error(codes.NotFound, "none")}, at, 0)
	require.Empty(t, in.VM.Failure.Abandoned)
	d = machine.Decide(in, machine.DefaultPolicy(), at)
	require.IsType(t, machine.TakePermit{}, d.Action, "the creation timeout is over: %s", d)

	held := in.VM
	for range 5 {
		held = held.After(machine.CallResult{Operation: driver.OpGetMachineStatus, Err: unended(driver.OpCreateMachine)}, at, 0)
	}
	failed := held.After(machine.CallResult{Operation: driver.OpGetMachineStatus, Err: status.Error(codes.Internal, "no")}, at, 0)
	require.Equal(t, 5, held.Failure.Attempts, "the wait grows")
	require.Equal(t, 1, failed.Failure.Attempts, "calls that were not made are no attempts")

	in.VM = in.VM.After(machine.CallResult{Operation: driver.OpGetMachineStatus, ProviderID: "simulated:///1", NodeName: "n"}, at, 0)
	d = machine.Decide(in, machine.DefaultPolicy(), at)
	require.NotEqual(t, machine.CallDriver{Operation: driver.OpGetMachineStatus}, d.Action)
}
