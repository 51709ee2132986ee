// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

func TestFault_Zero_RefusesEveryCallWithUnavailable(t *testing.T) {
	u, _ := standing(CloudOptions{Faults: []Fault{{}}})
	_, err := u.make(t.Context(), "m-1")
	require.EqualError(t, err, "machine codes error: code = [Unavailable] message = [simulated fault]")
	require.Equal(t, codes.Unavailable, codeOf(u.list(t.Context())))
	require.Equal(t, codes.Unavailable, codeOf(u.GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{})))
	require.Equal(t, codes.Unavailable, codeOf(u.ListSideResources(t.Context(), &driver.ListSideResourcesRequest{MachineClass: u.class, Secret: u.secret})))
	require.True(t, u.Snapshot().Empty())
	require.Equal(t, 1, u.Calls(driver.OpListMachines, codes.Unavailable))
}

func TestFault_Several_FirstMatchActs(t *testing.T) {
	u, _ := standing(CloudOptions{})
	remove := u.Inject(Fault{Code: codes.Internal})
	u.Inject(Fault{Code: codes.DataLoss})
	require.Equal(t, codes.Internal, codeOf(u.list(t.Context())))
	remove()
	remove()
	require.Equal(t, codes.DataLoss, codeOf(u.list(t.Context())))
	u.ClearFaults()
	require.Equal(t, codes.OK, codeOf(u.list(t.Context())))
}

func TestFault_CodeAndMessage_AreReturned(t *testing.T) {
	u, _ := standing(CloudOptions{Faults: []Fault{
		{Operation: driver.OpCreateMachine, Times: 1, Code: codes.ResourceExhausted, Message: "zone b is full", LastKnownState: "waiting"},
		{Operation: driver.OpDeleteMachine, LastKnownState: "stuck"},
	}})
	resp, err := u.make(t.Context(), "m-1")
	require.EqualError(t, err, "machine codes error: code = [ResourceExhausted] message = [zone b is full]")
	require.Equal(t, &driver.CreateMachineResponse{LastKnownState: "waiting"}, resp)
	gone, err := u.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: machineOf("m-1", ""), MachineClass: u.class, Secret: u.secret})
	require.Error(t, err)
	require.Equal(t, "stuck", gone.LastKnownState)
}

func TestFault_Hang_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := use(NewCloud(CloudOptions{Faults: []Fault{{Kind: Hang}}}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		require.Equal(t, codes.DeadlineExceeded, codeOf(u.make(ctx, "m-1")))
		require.Equal(t, time.Hour, time.Since(begin))
		require.True(t, u.Snapshot().Empty())
		require.Equal(t, codes.Internal, codeOf(u.make(context.Background(), "m-1")), "the context has no end") //nolint:usetesting // so it is meant
	})
}

func TestFault_PartialCreate_IsCompletedOrDeleted(t *testing.T) {
	for steps := range 5 {
		half := Fault{Operation: driver.OpCreateMachine, Kind: Partial, Steps: steps, Times: 1, Code: codes.Internal}
		wantSides := []int{2, 1, 2, 2, 2}[steps]
		wantVMs := []int{0, 0, 0, 1, 1}[steps]
		for _, then := range []string{"create", "delete"} {
			t.Run(fmt.Sprintf("%d steps, then %s", steps, then), func(t *testing.T) {
				u, _ := standing(CloudOptions{Faults: []Fault{half}})
				require.Equal(t, codes.Internal, codeOf(u.make(t.Context(), "m-1")))
				s := u.Snapshot()
				require.Len(t, s.SideResources, wantSides)
				require.Len(t, s.VMs, wantVMs)
				if wantVMs == 0 {
					require.Len(t, s.Leftovers(), wantSides)
					require.Equal(t, codes.NotFound, codeOf(u.get(t.Context(), "m-1", "")))
				}
				if then == "create" {
					u.made(t, "m-1")
					s := u.Snapshot()
					require.Len(t, s.VMs, 1)
					require.Len(t, s.SideResources, 2)
					require.Empty(t, s.Leftovers())
				}
				require.NoError(t, u.remove(t.Context(), "m-1", ""))
				require.True(t, u.Snapshot().Empty(), u.Snapshot())
			})
		}
	}
}

func TestFault_Probability_DependsOnSeedAndMachine(t *testing.T) {
	draw := func(seed uint64, noise bool) (out []codes.Code) {
		u, _ := standing(CloudOptions{Seed: seed, Faults: []Fault{{Probability: 0.5}}})
		for range 64 {
			if noise {
				_, _ = u.get(t.Context(), "m-2", "")
			}
			_, err := u.get(t.Context(), "m-1", "")
			out = append(out, codes.Of(err))
		}
		return out
	}
	first := draw(1, false)
	require.Equal(t, first, draw(1, false))
	require.Equal(t, first, draw(1, true))
	require.NotEqual(t, first, draw(2, false))
	u, _ := standing(CloudOptions{Faults: []Fault{{Probability: 0.25}}})
	for range 4000 {
		_, _ = u.get(t.Context(), "m-1", "")
	}
	hit := u.Calls(driver.OpGetMachineStatus, codes.Unavailable)
	require.InDelta(t, 1000, hit, 150)
}

// TestFault_AnyFault_KeepsIdempotency creates and deletes machines with short
// timeouts and all kinds of faults. No machine ever has a second VM, and in the end nothing is
// left.
func TestFault_AnyFault_KeepsIdempotency(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			o := slow()
			o.Seed = seed
			for range 4 {
				o.Faults = append(o.Faults, Fault{
					Probability: 0.25, Kind: FaultKind(rng.IntN(4)), Steps: rng.IntN(4),
				})
			}
			u := use(NewCloud(o))
			names := []string{"m-0", "m-1", "m-2"}
			for range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(60))*time.Second)
				name := names[rng.IntN(len(names))]
				if rng.IntN(3) == 0 {
					_ = u.remove(ctx, name, "")
				} else {
					_, _ = u.make(ctx, name)
				}
				cancel()
			}
			n, machine := u.History().MaxVMsOfOneMachine()
			require.LessOrEqual(t, n, 1, "seed %d: %s", seed, machine)
			u.ClearFaults()
			time.Sleep(time.Minute) // of the bubble
			for _, name := range names {
				if err := u.remove(t.Context(), name, ""); codes.Of(err) != codes.NotFound {
					require.NoError(t, err, "seed %d", seed)
				}
			}
			time.Sleep(time.Minute)
			require.True(t, u.Snapshot().Empty(), "seed %d: %s", seed, u.Snapshot())
		})
	}
}
