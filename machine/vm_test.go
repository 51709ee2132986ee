// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
)

// Every code of every operation is either an answer with a meaning, or a
// failure.
func TestWhatEveryCodeOfEveryOperationMeans(t *testing.T) {
	t.Parallel()
	answers := map[driver.Operation]map[codes.Code]machine.Sighting{
		driver.OpGetMachineStatus: {
			codes.OK: machine.Present, codes.NotFound: machine.Absent, codes.Unimplemented: machine.Absent, codes.Uninitialized: machine.Uninitialized,
		},
		driver.OpCreateMachine:     {codes.OK: machine.Uninitialized},
		driver.OpInitializeMachine: {codes.OK: machine.Present, codes.Unimplemented: machine.Present},
		driver.OpDeleteMachine:     {codes.OK: machine.Deleted, codes.NotFound: machine.Absent},
		driver.OpListMachines:      {},
		driver.OpGetVolumeIDs:      {},
		"Reboot":                   {},
	}
	for op, meaning := range answers {
		for _, code := range append(codes.All(), 99) {
			v := machine.VMView{Sighting: machine.Uninitialized, ProviderID: "id"}.After(machine.Answer{Operation: op, Err: status.Error(code, "no")}, now, 0)
			want, answered := meaning[code]
			if answered {
				require.Equal(t, want, v.Sighting, "%s %s", op, code)
				require.Zero(t, v.Failure)
			} else {
				require.NotEqual(t, codes.OK, v.Failure.Code, "%s %s", op, code)
				require.NotEmpty(t, v.Failure.Message)
				require.Equal(t, 1, v.Failure.Attempts)
				require.NotContains(t, []machine.Sighting{machine.Absent, machine.Deleted, machine.Present}, v.Sighting, "%s %s", op, code)
			}
			require.Equal(t, now, v.SeenAt)
			require.Equal(t, op, v.Asked)
			require.Equal(t, "id", v.ProviderID, "what was named stays named")
		}
	}
}

func TestAFailureIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	fail := func(op driver.Operation, code codes.Code) machine.Answer {
		return machine.Answer{Operation: op, Err: status.Error(code, "no")}
	}
	for name, op := range map[string]driver.Operation{
		"a creation that failed may have made a VM": driver.OpCreateMachine,
		"a look that failed saw nothing":            driver.OpGetMachineStatus,
	} {
		v := machine.VMView{Sighting: machine.Absent}.After(fail(op, codes.AlreadyExists), now, 0)
		require.Equal(t, machine.NotLooked, v.Sighting, name)
	}
	v := machine.VMView{Sighting: machine.Absent}.After(machine.Answer{Operation: driver.OpInitializeMachine, Err: status.Error(codes.Unimplemented, "")}, now, 0)
	require.Equal(t, machine.Absent, v.Sighting, "that there is nothing to initialise says nothing of the VM")
	require.True(t, v.Initialized)
	v = v.After(machine.Answer{Operation: driver.OpCreateMachine, ProviderID: "id"}, now, 0)
	require.False(t, v.Initialized, "a new VM is not")
	v = machine.VMView{}.After(machine.Answer{Operation: driver.OpGetMachineStatus, Err: errors.New("boom")}, now, 0)
	require.Equal(t, codes.Unknown, v.Failure.Code, "an error without a code is one (DM-06)")
}

// wait returns how long a machine waits after a failed creation.
func wait(err error, times int, chance float64) time.Duration {
	in := after(append(crashed, vm(machine.VMView{}))...)
	for range times {
		in.VM = in.VM.After(machine.Answer{Operation: driver.OpCreateMachine, Err: err}, now, chance)
	}
	in.Machine = machine.Decide(in, machine.Policy{}, now).Do.(machine.UpdateStatus).Machine
	return machine.Decide(in, machine.Policy{}, now).NextCheck.Sub(now)
}

func TestHowLongAFailureIsWaitedFor(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10*time.Minute, wait(status.Error(codes.ResourceExhausted, ""), 1, 0))
	require.Equal(t, 5*time.Second, wait(status.Error(codes.Unavailable, ""), 1, 0))
	require.Equal(t, 20*time.Second, wait(status.Error(codes.Unavailable, ""), 3, 0), "longer each time (DM-50)")
	require.Equal(t, 4*time.Second, wait(status.Error(codes.Unavailable, ""), 1, 1), "chance spreads")
	require.Equal(t, time.Minute, wait(codes.WithRetryAfter(status.Error(codes.Unavailable, ""), time.Minute), 1, 0), "the provider may ask for more")
	for _, code := range []codes.Code{codes.AlreadyExists, codes.Uninitialized} {
		require.Equal(t, 5*time.Second, wait(status.Error(code, ""), 1, 0), "%s is looked into soon", code)
	}
	require.Equal(t, 3*time.Minute, wait(status.Error(codes.Internal, ""), 1, 0))
}

func TestAddressesAreCollectedOnce(t *testing.T) {
	t.Parallel()
	a, b := corev1.NodeAddress{Type: "InternalIP", Address: "1"}, corev1.NodeAddress{Type: "InternalIP", Address: "2"}
	v := machine.VMView{Addresses: []corev1.NodeAddress{b}}
	before := machine.VMView{Addresses: []corev1.NodeAddress{b}}
	next := v.After(machine.FromStatus(&driver.GetMachineStatusResponse{Addresses: []corev1.NodeAddress{a, b}}, nil), now, 0)
	require.Equal(t, []corev1.NodeAddress{a, b}, next.Addresses)
	same := v.After(machine.FromDelete(nil, nil), now, 0)
	same.Addresses[0].Address = "changed"
	require.Empty(t, cmp.Diff(before, v))
}

// A driver that answers nothing at all must not bring anything down (DM-05).
func TestANilResponseIsAnIncompleteAnswer(t *testing.T) {
	t.Parallel()
	for _, a := range []machine.Answer{
		machine.FromCreate(nil, nil), machine.FromStatus(nil, nil), machine.FromStatus(nil, status.Error(codes.Uninitialized, "")),
	} {
		in := after(intended)
		in.VM = in.VM.After(a, now, 0)
		d := lawful(t, in, machine.DefaultPolicy())
		require.Equal(t, machine.ReasonProviderFailed, d.Reason)
		require.Equal(t, "Internal", d.Do.(machine.UpdateStatus).Machine.Status.LastOperation.ErrorCode)
	}
}
