// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The reasons why a cell of the table below is not what the reference system does.
const (
	texts   = "DM-06: an error without a code is Unknown, and is told"
	wiped   = "DM-33: what the driver said is never wiped"
	inited  = "DM-40: a VM that was found is initialised"
	waited  = "DM-48: the next step needs no retry"
	lookNow = "DM-33, and what exists already is looked for at once"
)

// creationTable is section 28.1: what each code of each call means for a creation,
// the lastKnownState before being "old". The columns are GetMachineStatus without
// and with a provider ID, CreateMachine and InitializeMachine. A cell holds what is
// done or written, the wait after it and the lastKnownState then, for the reference
// system and, behind an arrow, for us where that differs.
var creationTable = []struct {
	code  string
	cells [4]string
}{
	{"OK", [4]string{"label 5s old → label+init 0s old (" + inited + ")", "Pending 5s old → init 0s old (" + inited + ")", "label+init 5s old → label+init 0s old (" + waited + ")", "- 5s old → Pending 0s old (" + waited + ")"}},
	{"Canceled", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unknown", transient},
	{"InvalidArgument", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"DeadlineExceeded", transient},
	{"NotFound", [4]string{"create 0s old", "Pending 5s old → init 0s old (" + inited + ")", "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")", "CLBF 5s old"}},
	{"AlreadyExists", permanent("CLBF 5s old (" + lookNow + ")")},
	{"PermissionDenied", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"ResourceExhausted", [4]string{"CLBF 10m0s old", "CLBF 10m0s old", "CLBF 10m0s old", "CLBF 5s old"}},
	{"FailedPrecondition", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Aborted", transient},
	{"OutOfRange", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unimplemented", [4]string{"create 0s old", "Pending 5s old → init 0s old (" + inited + ")", "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")", "- 5s old → Pending 0s old (" + waited + ")"}},
	{"Internal", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unavailable", transient},
	{"DataLoss", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unauthenticated", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Uninitialized", [4]string{"label+init 5s old → label+init 0s old (" + waited + ")", "init 5s old → init 0s old (" + waited + ")", "CLBF 3m0s - → CLBF 5s old (" + lookNow + ")", "CLBF 5s old"}},
	{"undecodable", [4]string{"unchanged 3m0s old → CLBF 5s old (" + texts + ")", "unchanged 3m0s old → CLBF 5s old (" + texts + ")", "CLBF 3m0s - → CLBF 5s old (" + texts + ")", "unchanged 10m0s old → CLBF 5s old (" + texts + ")"}},
}

var transient = [4]string{"CLBF 5s old", "CLBF 5s old", "CLBF 5s old", "CLBF 5s old"}

// permanent is the row of a code that does not pass by itself, with our cell for
// CreateMachine.
func permanent(created string) [4]string {
	look := "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")"
	return [4]string{look, look, "CLBF 3m0s - → " + created, "CLBF 5s old"}
}

// creationAfter is what becomes of a creation by an answer of one of the columns.
func creationAfter(column int, err error, state string, changes ...change) machine.Observation {
	in := after(append([]change{intended, spec(func(m *v1alpha1.Machine) { m.Status.LastKnownState = "old" })}, changes...)...)
	var a machine.Answer
	switch column {
	case 0, 1:
		a = machine.FromStatus(nil, err)
	case 2:
		a = machine.FromCreate(nil, err)
	case 3:
		in.VM.Sighting, in.VM.ProviderID, in.VM.NodeName = machine.Uninitialized, "simulated:///1", "n"
		a = machine.FromInitialize(nil, err)
	}
	if column == 1 || column == 3 {
		withID(&in)
	}
	if code := codes.Of(err); code == codes.OK || code == codes.Uninitialized && column < 2 {
		a.ProviderID, a.NodeName = "simulated:///1", "n"
	}
	a.LastKnownState = state
	in.VM = in.VM.After(a, now, 0)
	return in
}

// cellOf follows the decisions until one acts on the provider or waits, and
// returns the cell.
func cellOf(t *testing.T, in machine.Observation) (string, *v1alpha1.Machine) {
	t.Helper()
	var did []string
	for range 5 {
		d := lawful(t, in, machine.DefaultPolicy())
		wait := time.Duration(0)
		switch a := d.Do.(type) {
		case machine.UpdateMachine:
			did, in.Machine = append(did, "label"), a.Machine
			continue
		case machine.UpdateStatus:
			did, in.Machine = append(did, string(a.Machine.Status.CurrentStatus.Phase)), a.Machine
			if a.Machine.Status.CurrentStatus.Phase != v1alpha1.MachinePending {
				continue
			}
		case machine.CreateVM:
			did = append(did, "create")
		case machine.InitializeVM:
			did = append(did, "init")
		case nil:
			if d.NextCheck.IsZero() {
				wait = -1 // for ever
			} else {
				wait = d.NextCheck.Sub(now)
			}
		default:
			t.Fatalf("%s", d)
		}
		state := in.Machine.Status.LastKnownState
		if state == "" {
			state = "-"
		}
		text := strings.ReplaceAll(strings.Join(did, "+"), "CrashLoopBackOff", "CLBF")
		return strings.Join([]string{text, wait.String(), state}, " "), in.Machine
	}
	t.Fatal("no end")
	return "", nil
}

func errorOf(code string) error {
	if code == "undecodable" {
		return errors.New("[no] [code] [at all]")
	}
	for _, c := range codes.All() {
		if c.String() == code && c != codes.OK {
			return status.Error(c, "no")
		}
	}
	return nil
}

// Section 28.1, the columns of a creation.
func TestSection28_1_WhatEveryCodeMeansForACreation(t *testing.T) {
	t.Parallel()
	require.Len(t, creationTable, len(codes.All())+1, "every code, and an error without one")
	for _, row := range creationTable {
		err := errorOf(row.code)
		require.Equal(t, row.code != "OK", err != nil, row.code)
		for column, cell := range row.cells {
			reference, ours, deviates := strings.Cut(cell, " → ")
			if !deviates {
				ours = reference
			}
			ours, why, _ := strings.Cut(strings.TrimSuffix(ours, ")"), " (")
			require.Equal(t, deviates, why != "", "%s, column %d: a deviation has a reason", row.code, column)
			require.NotEqual(t, deviates, ours == reference, "%s, column %d: no reason without a deviation", row.code, column)

			got, m := cellOf(t, creationAfter(column, err, ""))
			require.Equal(t, ours, got, "%s, column %d", row.code, column)
			if !strings.HasPrefix(ours, "CLBF") {
				require.Empty(t, m.Status.LastOperation.ErrorCode)
				continue
			}
			code := row.code
			if code == "undecodable" {
				code = "Unknown"
			}
			require.Equal(t, code, m.Status.LastOperation.ErrorCode)
			require.Equal(t, v1alpha1.MachineOperationCreate, m.Status.LastOperation.Type)
			require.Equal(t, v1alpha1.MachineStateFailed, m.Status.LastOperation.State)
			text := "Cloud provider message - " + err.Error()
			if column == 3 {
				text = "Provider error: " + err.Error() + ". Initialize VM Instance"
			}
			require.Equal(t, text, m.Status.LastOperation.Description)
			require.False(t, m.Status.CurrentStatus.TimeoutActive)

			_, m = cellOf(t, creationAfter(column, err, "new"))
			require.Equal(t, "new", m.Status.LastKnownState, "what the driver says next to an error is kept")
			got, m = cellOf(t, creationAfter(column, err, "", old))
			require.Equal(t, "Failed -1ns old", got, "%s, column %d: the creation timeout is over", row.code, column)
			require.Equal(t, code, m.Status.LastOperation.ErrorCode)
		}
	}
}

// The waits grow (DM-50), and a VM is looked for after each, so that none is made
// twice.
func TestSection28_1_WaitsGrowAndEndInALook(t *testing.T) {
	t.Parallel()
	for _, code := range codes.All() {
		var waits []time.Duration
		in := creationAfter(2, status.Error(code, "no"), "", spec(func(m *v1alpha1.Machine) {
			m.Annotations = map[string]string{v1alpha1.EffectiveCreationTimeout: "0s"}
		}))
		if code == codes.OK {
			continue
		}
		clock := now
		for range 6 {
			d := machine.Decide(in, machine.DefaultPolicy(), clock)
			if u, ok := d.Do.(machine.UpdateStatus); ok {
				in.Machine = u.Machine
				d = machine.Decide(in, machine.DefaultPolicy(), clock)
			}
			require.Nil(t, d.Do)
			waits, clock = append(waits, d.NextCheck.Sub(clock)), d.NextCheck
			require.Equal(t, machine.LookForVM{}, machine.Decide(in, machine.DefaultPolicy(), clock).Do, "%s", code)
			in.VM = in.VM.After(machine.FromStatus(nil, status.Error(codes.NotFound, "")), clock, 0)
			in.VM = in.VM.After(machine.Answer{Operation: driver.OpCreateMachine, Err: status.Error(code, "no")}, clock, 0)
		}
		for i := 1; i < len(waits); i++ {
			require.GreaterOrEqual(t, waits[i], waits[i-1], "%s: %v", code, waits)
		}
		require.LessOrEqual(t, waits[5], 10*time.Minute)
	}
}
