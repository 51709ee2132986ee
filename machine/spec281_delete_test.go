// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// nextStep is what the reference system does when a driver call of a deletion ends with
// a code: the letter of the step that is next, and after how long.
type nextStep struct {
	step byte
	wait time.Duration
}

// codeRow is a row of the table of section 28.1, with its columns of the deletion.
type codeRow struct {
	err         error
	look, erase nextStep
}

func codeRows() map[string]codeRow {
	const soon, medium, long = 5 * time.Second, 3 * time.Minute, 10 * time.Minute
	typed := func(c codes.Code, look, erase nextStep) codeRow { return codeRow{status.Error(c, "text"), look, erase} }
	on, lookSoon, lookLater := nextStep{'B', soon}, nextStep{'A', soon}, nextStep{'A', medium}
	gone, eraseSoon, eraseLater := nextStep{'E', soon}, nextStep{'D', soon}, nextStep{'D', long}
	return map[string]codeRow{
		"OK":                 {nil, on, gone},
		"Canceled":           typed(codes.Canceled, lookLater, eraseLater),
		"Unknown":            typed(codes.Unknown, lookSoon, eraseSoon),
		"InvalidArgument":    typed(codes.InvalidArgument, lookLater, eraseLater),
		"DeadlineExceeded":   typed(codes.DeadlineExceeded, lookSoon, eraseSoon),
		"NotFound":           typed(codes.NotFound, on, gone),
		"AlreadyExists":      typed(codes.AlreadyExists, lookLater, eraseLater),
		"PermissionDenied":   typed(codes.PermissionDenied, lookLater, eraseLater),
		"ResourceExhausted":  typed(codes.ResourceExhausted, lookLater, eraseLater),
		"FailedPrecondition": typed(codes.FailedPrecondition, lookLater, eraseLater),
		"Aborted":            typed(codes.Aborted, lookSoon, eraseSoon),
		"OutOfRange":         typed(codes.OutOfRange, lookLater, eraseLater),
		"Unimplemented":      typed(codes.Unimplemented, on, eraseLater),
		"Internal":           typed(codes.Internal, lookLater, eraseLater),
		"Unavailable":        typed(codes.Unavailable, lookSoon, eraseSoon),
		"DataLoss":           typed(codes.DataLoss, lookLater, eraseLater),
		"Unauthenticated":    typed(codes.Unauthenticated, lookLater, eraseLater),
		"Uninitialized":      typed(codes.Uninitialized, on, eraseLater),
		"undecodable":        {errors.New("text"), nextStep{'A', long}, nextStep{'D', long}},
	}
}

// deviation returns how long the first wait is where it is not that of the reference
// system, and which defect it repairs.
func deviation(row codeRow, op driver.Operation, there time.Duration) (time.Duration, string) {
	switch code := codes.Of(row.err); {
	case code == codes.Unknown && there == 10*time.Minute:
		return 5 * time.Second, "DM-06: an error without a code is Unknown, like any other"
	case code == codes.ResourceExhausted && op == driver.OpGetMachineStatus:
		return 10 * time.Minute, "one code waits as long wherever it comes from"
	case code != codes.ResourceExhausted && op == driver.OpDeleteMachine && there == 10*time.Minute:
		return 3 * time.Minute, "DM-50: the wait begins shorter, and grows to ten minutes"
	}
	return there, ""
}

// afterCall returns what is written and waited for after a call that failed with err,
// from the machine that the table of the study begins with.
func afterCall(op driver.Operation, err error, changes ...change) machine.Observation {
	in := after(append([]change{leaving, intended, spec(func(m *v1alpha1.Machine) { m.Status.LastKnownState = "old" })}, changes...)...)
	in.VM = in.VM.After(machine.Answer{Operation: op, Err: err, ProviderID: "simulated:///1", NodeName: "n"}, now, 0)
	return in
}

func TestSection28_1ColumnGMSDelete(t *testing.T) {
	t.Parallel()
	rows := codeRows()
	require.Len(t, rows, 19)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := afterCall(driver.OpGetMachineStatus, row.err)
			d := lawful(t, in, machine.DefaultPolicy())
			if row.look.step == 'B' { // the next step, at once; §29 counts five seconds for each
				if named, ok := d.Do.(machine.UpdateMachine); ok {
					require.Equal(t, "n", named.Machine.Labels[v1alpha1.NodeLabelKey])
					require.Contains(t, []string{"OK", "Uninitialized"}, name)
					in.Machine = named.Machine
					d = lawful(t, in, machine.DefaultPolicy())
				}
				require.Equal(t, `record phase "Terminating", Delete Processing (Deleting: `+v1alpha1.GetVMStatus+")", d.String())
				require.Equal(t, "old", d.Do.(machine.UpdateStatus).Machine.Status.LastKnownState)
				return
			}
			failed := d.Do.(machine.UpdateStatus).Machine
			want := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed,
				"Getting VM status failed due to - "+row.err.Error()+". However, will re-try in the next resync. "+v1alpha1.GetVMStatus, "")
			requireFailure(t, want, failed)
			in.Machine = failed
			wait, _ := deviation(row, driver.OpGetMachineStatus, row.look.wait)
			requireWait(t, in, wait, machine.LookForVM{})
		})
	}
}

func TestSection28_1ColumnDelete(t *testing.T) {
	t.Parallel()
	for name, row := range codeRows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := afterCall(driver.OpDeleteMachine, row.err, withID, phase(v1alpha1.MachineTerminating))
			d := lawful(t, in, machine.DefaultPolicy())
			if row.erase.step == 'E' {
				require.Equal(t, "update machine: no finalizer (Released)", d.String())
				require.Equal(t, "old", d.Do.(machine.UpdateMachine).Machine.Status.LastKnownState, "DM-33: it is not wiped")
				return
			}
			failed := d.Do.(machine.UpdateStatus).Machine
			want := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed,
				"VM deletion failed due to - "+row.err.Error()+". However, will re-try in the next resync. "+v1alpha1.InitiateVMDeletion, "")
			requireFailure(t, want, failed)
			in.Machine = failed
			wait, _ := deviation(row, driver.OpDeleteMachine, row.erase.wait)
			requireWait(t, in, wait, machine.DeleteVM{})
		})
	}
}

// requireFailure asserts what is written of a failure, in every cell alike.
func requireFailure(t *testing.T, want change, got *v1alpha1.Machine) {
	t.Helper()
	in := machine.Observation{Machine: newMachine("m")}
	want(&in)
	expected := in.Machine.Status.LastOperation
	expected.LastUpdateTime = got.Status.LastOperation.LastUpdateTime
	require.Equal(t, expected, got.Status.LastOperation)
	require.Empty(t, got.Status.LastOperation.ErrorCode, "as the reference system, which has none in a deletion")
	require.Equal(t, v1alpha1.MachineTerminating, got.Status.CurrentStatus.Phase)
	require.Equal(t, "old", got.Status.LastKnownState, "DM-33: it is not wiped")
}

// requireWait asserts for how long nothing is done, and what then.
func requireWait(t *testing.T, in machine.Observation, wait time.Duration, then machine.Action) {
	t.Helper()
	d := lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Do)
	require.Equal(t, now.Add(wait), d.NextCheck, fmt.Sprint(d))
	require.Equal(t, then, machine.Decide(in, machine.DefaultPolicy(), d.NextCheck).Do)
}

// TestSection28_1TheWaitsOfADeletionGrow is DM-50: the reference system repeats what
// is transient every five seconds without end.
func TestSection28_1TheWaitsOfADeletionGrow(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code][]time.Duration{
		codes.Unavailable: {5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second},
		codes.Internal:    {3 * time.Minute, 6 * time.Minute, 10 * time.Minute, 10 * time.Minute},
	} {
		in, at := terminating(), now
		for _, wait := range want {
			in.VM = in.VM.After(machine.Answer{Operation: driver.OpDeleteMachine, Err: status.Error(code, "text")}, at, 0)
			if a, ok := machine.Decide(in, machine.Policy{}, at).Do.(machine.UpdateStatus); ok {
				in.Machine = a.Machine
			}
			d := machine.Decide(in, machine.Policy{}, at)
			require.Equal(t, wait, d.NextCheck.Sub(at), "%s", code)
			at = d.NextCheck
		}
	}
}
