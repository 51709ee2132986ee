// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

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
	q := &deleteRequest{Machine: machineOf("m-1", ""), MachineClass: u.class, Secret: u.secret}
	gone, err := u.DeleteMachine(t.Context(), q)
	require.EqualError(t, err, "machine codes error: code = [Unavailable] message = [simulated fault]")
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
	for steps, want := range []string{
		"no VM with 2 sides, 2 left over", "no VM with 1 sides, 1 left over", "no VM with 2 sides, 2 left over",
		"m-1/1 Running with 2 sides, 0 left over", "m-1/1 Running with 2 sides, 0 left over",
	} {
		for _, then := range []string{"make", "delete"} {
			half := Fault{Operation: driver.OpCreateMachine, Kind: Partial, Steps: steps, Times: 1, Code: codes.Internal}
			u, _ := standing(CloudOptions{Faults: []Fault{half}})
			require.Equal(t, codes.Internal, codeOf(u.make(t.Context(), "m-1")))
			require.Equal(t, want, u.all(), "%d steps", steps)
			if then == "make" {
				u.made(t, "m-1")
				require.Equal(t, "m-1/1 Running with 2 sides, 0 left over", u.all())
			}
			require.NoError(t, u.remove(t.Context(), "m-1", ""))
			require.Equal(t, "nothing", u.all())
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
