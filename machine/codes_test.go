// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The reasons for differences from MCM in codeTable.
const (
	texts   = "DM-06: an error without a code is Unknown, and is recorded"
	wiped   = "DM-33: lastKnownState is never removed"
	inited  = "DM-40: a VM that was found is initialized"
	waited  = "DM-48: the next step needs no retry"
	lookNow = "DM-33, and an existing VM is looked for at once"
	grows   = "DM-50: the wait begins shorter, and grows to ten minutes"
	alike   = "the wait depends on the code, not on the call"
)

// codeTable has what each code of each call causes, with the lastKnownState "old" before. The
// columns of a creation are GetMachineStatus without and with a provider ID, CreateMachine, and
// InitializeMachine. Those of a deletion are GetMachineStatus and DeleteMachine.
//
// A cell has the action or the written phase, the wait after it, and the lastKnownState then. It is
// for MCM and, behind an arrow, for this package if it differs. A deletion continues ("on"), ends
// ("gone"), or repeats its call after a wait.
var codeTable = []struct {
	code  string
	cells [6]string
}{
	{"OK", [6]string{"label 5s old → label+init 0s old (" + inited + ")", "Pending 5s old → init 0s old (" + inited + ")", "label+init 5s old → label+init 0s old (" + waited + ")", "- 5s old → Pending 0s old (" + waited + ")", "label+on", "gone"}},
	{"Canceled", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unknown", transient},
	{"InvalidArgument", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"DeadlineExceeded", transient},
	{"NotFound", [6]string{"create 0s old", "Pending 5s old → init 0s old (" + inited + ")", "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")", "CLBF 5s old", "on", "gone"}},
	{"AlreadyExists", permanent("CLBF 5s old (" + lookNow + ")")},
	{"PermissionDenied", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"ResourceExhausted", [6]string{"CLBF 10m0s old", "CLBF 10m0s old", "CLBF 10m0s old", "CLBF 5s old", "look 3m0s → look 10m0s (" + alike + ")", "delete 10m0s"}},
	{"FailedPrecondition", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Aborted", transient},
	{"OutOfRange", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unimplemented", [6]string{"create 0s old", "Pending 5s old → init 0s old (" + inited + ")", "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")", "- 5s old → Pending 0s old (" + waited + ")", "on", deleteLater}},
	{"Internal", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unavailable", transient},
	{"DataLoss", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Unauthenticated", permanent("CLBF 3m0s old (" + wiped + ")")},
	{"Uninitialized", [6]string{"label+init 5s old → label+init 0s old (" + waited + ")", "init 5s old → init 0s old (" + waited + ")", "CLBF 3m0s - → CLBF 5s old (" + lookNow + ")", "CLBF 5s old", "label+on", deleteLater}},
	{"undecodable", [6]string{
		"unchanged 3m0s old → CLBF 5s old (" + texts + ")", "unchanged 3m0s old → CLBF 5s old (" + texts + ")", "CLBF 3m0s - → CLBF 5s old (" + texts + ")", "unchanged 10m0s old → CLBF 5s old (" + texts + ")",
		"look 10m0s → look 5s (" + texts + ")", "delete 10m0s → delete 5s (" + texts + ")",
	}},
}

const deleteLater = "delete 10m0s → delete 3m0s (" + grows + ")"

var transient = [6]string{"CLBF 5s old", "CLBF 5s old", "CLBF 5s old", "CLBF 5s old", "look 5s", "delete 5s"}

// permanent returns the row of a code that a retry does not change. created is the cell of this
// package for CreateMachine.
func permanent(created string) [6]string {
	look := "CLBF 3m0s - → CLBF 3m0s old (" + wiped + ")"
	return [6]string{look, look, "CLBF 3m0s - → " + created, "CLBF 5s old", "look 3m0s", deleteLater}
}

// deletionCell returns what is done after a call of a deletion.
func deletionCell(t *testing.T, column int, err error) string {
	t.Helper()
	known := spec(func(m *v1alpha1.Machine) { m.Status.LastKnownState = "old" })
	in, prefix := after(leaving, intended, known), ""
	a := machine.CallResult{Operation: driver.OpGetMachineStatus, Err: err, ProviderID: "simulated:///1", ByName: true}
	want := "Getting VM status failed due to - %v. However, will re-try in the next resync. " + v1alpha1.GetVMStatus
	if code := codes.Of(err); code == codes.OK || code == codes.Uninitialized {
		a.NodeName = "n"
	}
	if column == 5 {
		in = terminating(known)
		a = machine.CallResult{Operation: driver.OpDeleteMachine, Err: err}
		want = "VM deletion failed due to - %v. However, will re-try in the next resync. " + v1alpha1.InitiateVMDeletion
	}
	in.VM = in.VM.After(a, now, 0)
	d := lawful(t, in, machine.DefaultPolicy())
	if m, ok := objectOf[*v1alpha1.Machine](d.Action); ok && statusOf(d.Action) == nil && column == 4 {
		in.Machine, prefix = m, "label+"
		d = lawful(t, in, machine.DefaultPolicy())
	}
	switch d.String() {
	case `update status of machine m: phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + ")":
		require.Equal(t, "old", written(d.Action).Status.LastKnownState)
		return prefix + "on"
	case "update machine m: no finalizer (Released)":
		require.Equal(t, "old", written(d.Action).Status.LastKnownState, "DM-33: it is kept")
		return "gone"
	}
	in.Machine = written(d.Action)
	s := in.Machine.Status
	text, waits, _ := strings.Cut(s.LastOperation.Description, "; waits for ")
	require.Equal(t, fmt.Sprintf(want, err), text)
	require.Contains(t, waits, "provider (since ")
	require.Equal(t, v1alpha1.LastOperation{
		Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateFailed, Description: s.LastOperation.Description, LastUpdateTime: s.LastOperation.LastUpdateTime,
	}, s.LastOperation, "no code, as in MCM")
	require.Equal(t, v1alpha1.MachineTerminating, s.CurrentStatus.Phase)
	require.Equal(t, "old", s.LastKnownState, "DM-33: it is kept")
	d = lawful(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Action)
	again := machine.Decide(in, machine.DefaultPolicy(), d.NextCheck).Action
	return fmt.Sprint(strings.Fields(again.String())[0], " ", d.NextCheck.Sub(now))
}

// creationAfter returns the observation of a creation after a call of one of the columns.
func creationAfter(column int, err error, state string, changes ...change) machine.Observation {
	in := after(append([]change{intended, spec(func(m *v1alpha1.Machine) { m.Status.LastKnownState = "old" })}, changes...)...)
	calls := []driver.Operation{driver.OpGetMachineStatus, driver.OpGetMachineStatus, driver.OpCreateMachine, driver.OpInitializeMachine}
	a := machine.CallResult{Operation: calls[column], Err: err, ByName: column < 3}
	if column == 3 {
		in.VM.Presence, in.VM.ProviderID, in.VM.NodeName = machine.Uninitialized, "simulated:///1", "n"
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

// cellOf makes decisions until one calls the driver or waits, and returns the cell.
func cellOf(t *testing.T, in machine.Observation) (string, *v1alpha1.Machine) {
	t.Helper()
	var did []string
	for range 5 {
		d := lawful(t, in, machine.DefaultPolicy())
		wait := time.Duration(0)
		switch a := d.Action.(type) {
		case machinist.Update:
			if in.Machine = written(a); a.Subresource == "" {
				did = append(did, "label")
				continue
			}
			did = append(did, string(in.Machine.Status.CurrentStatus.Phase))
			if in.Machine.Status.CurrentStatus.Phase != v1alpha1.MachinePending {
				continue
			}
		case machine.CallDriver:
			did = append(did, map[driver.Operation]string{driver.OpCreateMachine: "create", driver.OpInitializeMachine: "init"}[a.Operation])
		case nil:
			if d.NextCheck.IsZero() {
				wait = -1 // no end
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
	c, known := codes.Parse(code)
	if c == codes.OK || !known {
		return nil
	}
	return status.Error(c, "no")
}

func TestCodes_EveryCodeAndCall_MatchTheTable(t *testing.T) {
	require.Len(t, codeTable, len(codes.All())+1, "all codes, and an error without a code")
	for _, row := range codeTable {
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

			if column >= 4 {
				require.Equal(t, ours, deletionCell(t, column, err), "%s, column %d", row.code, column)
				continue
			}
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
			require.Equal(t, text, operationText(m))
			require.False(t, m.Status.CurrentStatus.TimeoutActive)

			_, m = cellOf(t, creationAfter(column, err, "new"))
			require.Equal(t, "new", m.Status.LastKnownState, "lastKnownState of a failed call is stored")
			late := "Failed -1ns old"
			if sharedBy(column, code) {
				late = ours // the replacement would fail, too
			}
			got, m = cellOf(t, creationAfter(column, err, "", old))
			require.Equal(t, late, got, "%s, column %d: the creation timeout is over", row.code, column)
			require.Equal(t, code, m.Status.LastOperation.ErrorCode)
		}
	}
}

// sharedBy reports whether the replacement of a machine would have the same failure.
func sharedBy(column int, code string) bool {
	switch code {
	case "InvalidArgument", "PermissionDenied", "Unauthenticated":
		return true
	case "NotFound", "Unimplemented":
		return column == 2
	default:
		return false
	}
}

// TestCodes_RepeatedFailures_WaitsGrow asserts that the waits grow (DM-50). A creation looks for a
// VM after each wait, so that no second one is created.
func TestCodes_RepeatedFailures_WaitsGrow(t *testing.T) {
	p := machine.DefaultPolicy()
	for _, code := range slices.DeleteFunc(codes.All(), func(c codes.Code) bool { return c == codes.OK }) {
		creation := after(append(crashed, mayTake("0s"))...)
		for op, in := range map[driver.Operation]machine.Observation{driver.OpCreateMachine: creation, driver.OpDeleteMachine: terminating()} {
			if op == driver.OpDeleteMachine && code == codes.NotFound {
				continue // the VM is gone
			}
			var waits []time.Duration
			for at := now; len(waits) < 6; {
				in.VM = in.VM.After(machine.CallResult{Operation: op, Err: status.Error(code, "no")}, at, 0)
				d := machine.Decide(in, p, at)
				if carriedOut(&in, d.Action) {
					d = machine.Decide(in, p, at)
				}
				require.Nil(t, d.Action, "%s %s", op, code)
				waits, at = append(waits, d.NextCheck.Sub(at)), d.NextCheck
				if op == driver.OpDeleteMachine {
					require.Equal(t, machine.CallDriver{Operation: driver.OpDeleteMachine}, machine.Decide(in, p, at).Action, "%s", code)
					continue
				}
				require.Equal(t, machine.CallDriver{Operation: driver.OpGetMachineStatus}, machine.Decide(in, p, at).Action, "%s", code)
				in.VM = in.VM.After(machine.CallResult{Operation: driver.OpGetMachineStatus, Err: status.Error(codes.NotFound, "")}, at, 0)
			}
			require.True(t, slices.IsSorted(waits), "%s %s: %v", op, code, waits)
			require.LessOrEqual(t, waits[5], 10*time.Minute)
			require.True(t, waits[0] == 10*time.Minute || waits[0] < waits[1] && waits[1] < waits[2], "%s %s: %v", op, code, waits)
		}
	}
}

// wait returns how long a machine waits after a failed creation.
func wait(err error, times int, chance float64) time.Duration {
	in := after(append(crashed, vm(machine.VMView{}))...)
	for range times {
		in.VM = in.VM.After(machine.CallResult{Operation: driver.OpCreateMachine, Err: err}, now, chance)
	}
	in.Machine = written(machine.Decide(in, machine.Policy{}, now).Action)
	return machine.Decide(in, machine.Policy{}, now).NextCheck.Sub(now)
}

func TestBackoff_FailedCall_Waits(t *testing.T) {
	require.Equal(t, 20*time.Second, wait(status.Error(codes.Unavailable, ""), 3, 0), "the wait grows (DM-50)")
	require.Equal(t, 4*time.Second, wait(status.Error(codes.Unavailable, ""), 1, 1), "jitter shortens the wait")
	require.Equal(t, time.Minute, wait(codes.WithRetryAfter(status.Error(codes.Unavailable, ""), time.Minute), 1, 0), "RetryAfter of the provider")
}

// TestCall_NeitherResponseNorError_Fails asserts one rule for all operations, also for a deletion: its
// VM would be an orphan.
func TestCall_NeitherResponseNorError_Fails(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: nil}}
	for _, op := range []driver.Operation{driver.OpGetMachineStatus, driver.OpCreateMachine, driver.OpInitializeMachine, driver.OpDeleteMachine} {
		r, err := machine.Call(t.Context(), mute(nil), machine.CallDriver{Operation: op}, newMachine("m"), class(), secret)
		require.NoError(t, err)
		require.Equal(t, codes.Internal, codes.Of(r.Err), op)
	}
}

// TestCall_NilResponse_IsIncomplete asserts that a response of nil without an error causes no panic
// (DM-05).
func TestCall_NilResponse_IsIncomplete(t *testing.T) {
	for _, a := range []machine.CallResult{
		{Operation: driver.OpCreateMachine}, {Operation: driver.OpGetMachineStatus}, {Operation: driver.OpGetMachineStatus, Err: status.Error(codes.Uninitialized, "")},
	} {
		in := after(intended)
		in.VM = in.VM.After(a, now, 0)
		d := lawful(t, in, machine.DefaultPolicy())
		require.EqualValues(t, "ProviderFailed", d.Reason)
		require.Equal(t, "Internal", written(d.Action).Status.LastOperation.ErrorCode)
	}
}

// asked is the last request of a driver.
type asked struct {
	operation driver.Operation
	machine   *v1alpha1.Machine
	class     *v1alpha1.MachineClass
	secret    *corev1.Secret
}

// driver returns a driver that records its last request. Each call fails, and the error has the user
// data.
func (a *asked) driver() driver.Driver {
	return answers{call: func(o driver.Operation, m *v1alpha1.Machine, c *v1alpha1.MachineClass, s *corev1.Secret, _ func()) error {
		*a = asked{o, m, c, s}
		return status.Error(codes.Aborted, "no room for "+string(s.Data[machine.UserDataKey]))
	}}
}

func TestCall_EachAction_RequestOfTheDriver(t *testing.T) {
	m, c := newMachine("m"), class()
	m.Status.LastKnownState, m.Spec.ProviderID = "old", "id"
	secret := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: []byte("I am <<MACHINE_NAME>>"), "key": []byte("k")}}
	before, beforeSecret := m.DeepCopy(), secret.DeepCopy()
	for do, want := range map[machine.CallDriver][]string{
		{Operation: driver.OpGetMachineStatus}: {"GetMachineStatus", "I am <<MACHINE_NAME>>", "old", ""}, {Operation: driver.OpCreateMachine}: {"CreateMachine", "I am m", "old", "id"},
		{Operation: driver.OpInitializeMachine, LastKnownState: "new"}: {"InitializeMachine", "I am <<MACHINE_NAME>>", "new", "id"},
		{Operation: driver.OpInitializeMachine}:                        {"InitializeMachine", "I am <<MACHINE_NAME>>", "old", "id"},
		{Operation: driver.OpDeleteMachine}:                            {"DeleteMachine", "I am <<MACHINE_NAME>>", "old", "id"},
		{Operation: driver.OpDeleteMachine, ByName: true}:              {"DeleteMachine", "I am <<MACHINE_NAME>>", "old", ""},
	} {
		d := asked{}
		answer, err := machine.Call(t.Context(), d.driver(), do, m, c, secret)
		require.NoError(t, err, "the error is part of the result")
		require.Equal(t, d.operation, answer.Operation)
		require.Equal(t, codes.Aborted, codes.Of(answer.Err))
		require.Same(t, c, d.class)
		require.Equal(t, []byte("k"), d.secret.Data["key"])
		got := []string{string(d.operation), string(d.secret.Data[machine.UserDataKey]), d.machine.Status.LastKnownState, d.machine.Spec.ProviderID}
		require.Equal(t, want, got)
		require.Empty(t, cmp.Diff(before, m))
		require.Empty(t, cmp.Diff(beforeSecret, secret))
	}
}

func TestCall_ErrorWithUserData_TokenIsRemoved(t *testing.T) {
	m := newMachine("m")
	made, err := machine.NewBootstrapToken(m, now.Add(time.Hour), nil, rand.Reader)
	require.NoError(t, err)
	token := tokenOf(made)
	secret := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: []byte("join with <<BOOTSTRAP_TOKEN>>, or <<BOOTSTRAP_TOKEN>>")}}
	answer, err := machine.Call(t.Context(), new(asked).driver(), machine.CallDriver{Operation: driver.OpCreateMachine, Token: token}, m, class(), secret)
	require.NoError(t, err)
	id, hidden, _ := strings.Cut(token.Reveal(), ".")
	require.NotContains(t, answer.Err.Error(), hidden)
	require.Contains(t, answer.Err.Error(), "no room for join with "+id+".…, or")
	require.Equal(t, codes.Aborted, codes.Of(answer.Err), "the code is kept")
	view := machine.VMView{}.After(answer, now, 0)
	require.NotContains(t, view.Failure.Message, hidden)
	require.Equal(t, codes.Aborted, view.Failure.Code)
}

func TestCall_MissingArgument_Error(t *testing.T) {
	m, c, s, d := newMachine("m"), class(), &corev1.Secret{}, new(asked).driver()
	call := func(op driver.Operation, d driver.Driver, m *v1alpha1.Machine, c *v1alpha1.MachineClass, s *corev1.Secret) error {
		_, err := machine.Call(t.Context(), d, machine.CallDriver{Operation: op}, m, c, s)
		return err
	}
	require.ErrorIs(t, call(driver.OpCreateMachine, d, m, c, s), machine.ErrNoUserData)
	require.Error(t, call(driver.OpDeleteMachine, nil, m, c, s), "no driver")
	require.Error(t, call(driver.OpDeleteMachine, d, nil, c, s), "no machine")
	require.Error(t, call(driver.OpDeleteMachine, d, m, nil, s), "no class")
	require.Error(t, call(driver.OpDeleteMachine, d, m, c, nil), "no secret")
	require.Error(t, call("other", d, m, c, s), "nothing to call")
}

func TestVMView_InitializeUnimplemented_VMStaysAbsent(t *testing.T) {
	a := machine.CallResult{Operation: driver.OpInitializeMachine, Err: status.Error(codes.Unimplemented, "")}
	v := machine.VMView{Presence: machine.Absent}.After(a, now, 0)
	require.Equal(t, machine.Absent, v.Presence)
	require.True(t, v.Initialized)
}

// TestVMView_After_IsAsOldAsItsCall asserts that a response that arrived late proves nothing about the
// time of its arrival.
func TestVMView_After_IsAsOldAsItsCall(t *testing.T) {
	t.Parallel()
	a := machine.CallResult{Operation: driver.OpGetMachineStatus, AskedAt: now.Add(-time.Minute), Err: status.Error(codes.NotFound, "none")}
	require.Equal(t, a.AskedAt, machine.VMView{}.After(a, now, 0).SeenAt)
	a.AskedAt = time.Time{}
	require.Equal(t, now, machine.VMView{}.After(a, now, 0).SeenAt)
}

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
	creating := operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, created, "DeadlineExceeded")
	looking := "Getting VM status failed due to - " + unendedText(create) + again + v1alpha1.GetVMStatus
	deleting := "VM deletion failed due to - " + unendedText(remove) + again + v1alpha1.InitiateVMDeletion
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"creation: recorded":                  {after(intended, refused(create, create)), `update status of machine m: phase "CrashLoopBackOff", Create Failed (ProviderFailed: ` + created + `)`},
		"creation: not failed at its timeout": {after(intended, old, refused(look, create), creating, crashed), held(create)},

		"deletion: a creation is recorded, not the phase": {after(intended, leaving, refused(create, create), crashed), `update status of machine m: phase "CrashLoopBackOff", Delete Failed (CallAbandoned: ` + looking + `)`},
		"deletion: a creation is waited for":              {after(intended, leaving, refused(look, create), crashed, operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, looking, "")), held(create)},
		"deletion: the class is missing":                  {after(intended, leaving, noTarget, refused(look, create), crashed, noClass), `update status of machine m: phase "Terminating", Delete Processing (Deleting: ` + v1alpha1.GetVMStatus + `)`},
		"deletion: another call, recorded":                {living(terminating, noTarget, leaving, refused(remove, remove)), `update status of machine m: phase "Terminating", Delete Failed (CallAbandoned: ` + deleting + `)`},
		"deletion: the next call, same text":              {living(terminating, noTarget, leaving, refused(look, remove), operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed, deleting, "")), held(remove)},
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
		require.EqualValues(t, "CallAbandoned", d.Reason)
		require.Equal(t, description, operationText(m))
		require.Equal(t, phase, m.Status.CurrentStatus.Phase)
		in.Machine = m
		d = lawful(t, in, machine.DefaultPolicy())
		require.Nil(t, d.Action, d)
		require.EqualValues(t, "CallAbandoned", d.Holds[len(d.Holds)-1].Reason)
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

// TestBackoff_SecretCorrected_CallIsRepeatedAtOnce asserts that a call which failed with another version
// of the class or the credentials is repeated at once, whatever its code. A second failure waits again.
func TestBackoff_SecretCorrected_CallIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	failed := func(op driver.Operation, code codes.Code, version string) change {
		return func(in *machine.Observation) {
			failure(op, code, time.Second, machine.NotLooked)(in)
			in.VM.Failure.ClassVersion, in.VM.Failure.Attempts, in.Class.Version = "1/1", 9, version
		}
	}
	deletion := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed,
		"VM deletion failed due to - no quota. However, will re-try in the next resync. Initiate VM deletion", "")
	for _, code := range codes.All() {
		if code == codes.OK || code == codes.NotFound {
			continue
		}
		for version, changed := range map[string]bool{"1/1": false, "1/2": true, "2/1": true, "": false} {
			in := after(withID, leaving, phase(v1alpha1.MachineTerminating), deletion, failed(driver.OpDeleteMachine, code, version), noTarget)
			d := lawful(t, in, machine.DefaultPolicy())
			require.Equal(t, changed, d.Action == machine.CallDriver{Operation: driver.OpDeleteMachine}, "deletion, %s, version %q: %s", code, version, d)

			in = after(intended, failed(driver.OpCreateMachine, code, version))
			write(t, &in) // the failure
			d = machine.Decide(in, machine.DefaultPolicy(), now)
			require.Equal(t, changed, d.Action == machine.CallDriver{Operation: driver.OpGetMachineStatus}, "creation, %s, version %q: %s", code, version, d)
		}
	}
	for version, asks := range map[string]bool{"1/1": false, "1/2": true} {
		in := after(withID, leaving, phase(v1alpha1.MachineTerminating), deletion, failed(driver.OpDeleteMachine, codes.Unauthenticated, version),
			node(ready(corev1.ConditionTrue)), onNode(func(n *corev1.Node) { unmark(n) }), byForce)
		in.VM.Named = machine.NamedVM{}
		d := lawful(t, in, machine.DefaultPolicy())
		require.Equal(t, asks, d.Action == machine.CallDriver{Operation: driver.OpGetMachineStatus}, "an unproven Node, version %q: %s", version, d)
	}
	view := machine.ViewClass(after().Class.Class, &corev1.Secret{}, errors.New("missing"))
	corrected := machine.ViewClass(after().Class.Class, &corev1.Secret{}, nil)
	corrected.Class.ResourceVersion = "7"
	require.NotEqual(t, view.Version, machine.ViewClass(corrected.Class, nil, nil).Version)

	failedAgain := machine.VMView{}.After(machine.CallResult{Operation: driver.OpDeleteMachine, Err: errors.New("no"), ClassVersion: "1/2"}, now, 0)
	require.Equal(t, "1/2", failedAgain.Failure.ClassVersion)
}

// TestCallFailure_ErrorInAnError_IsSaidOnce has drivers that put the text of an error into the message of another.
func TestCallFailure_ErrorInAnError_IsSaidOnce(t *testing.T) {
	t.Parallel()
	inner := status.Error(codes.ResourceExhausted, "no large VMs")
	for text, err := range map[string]error{
		"machine codes error: code = [ResourceExhausted] message = [no large VMs]":                           inner,
		"machine codes error: code = [Internal] message = [no large VMs]":                                    status.Error(codes.Internal, inner.Error()),
		"machine codes error: code = [Internal] message = [create vm-1: no large VMs]":                       status.Error(codes.Internal, "create vm-1: "+inner.Error()),
		"machine codes error: code = [Aborted] message = [create vm-1: no large VMs]":                        status.Error(codes.Aborted, status.Error(codes.Internal, "create vm-1: "+inner.Error()).Error()),
		"machine codes error: code = [Internal] message = [machine codes error: code = [Odd] message = [x]]": status.Error(codes.Internal, "machine codes error: code = [Odd] message = [x]"),
		"create: machine codes error: code = [ResourceExhausted] message = [no large VMs]":                   fmt.Errorf("create: %w", inner),
		"boom": errors.New("boom"),
	} {
		v := machine.VMView{}.After(machine.CallResult{Operation: driver.OpCreateMachine, Err: err}, time.Unix(1_700_000_000, 0), 0)
		require.Equal(t, text, v.Failure.Message)
	}
}

// TestAbandonedCall_NewerClass_WaitsForItsEnd asserts that a correction does not repeat a call which still runs.
func TestAbandonedCall_NewerClass_WaitsForItsEnd(t *testing.T) {
	in := after(intended, refused(driver.OpGetMachineStatus, driver.OpCreateMachine))
	in.Machine = written(machine.Decide(in, machine.DefaultPolicy(), now).Action)
	in.VM.Failure.ClassVersion, in.Class.Version = "1", "2"
	d := machine.Decide(in, machine.DefaultPolicy(), now)
	require.Nil(t, d.Action, d)
	require.EqualValues(t, "CallAbandoned", d.Holds[0].Reason)
}
