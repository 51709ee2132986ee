// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run only this schedule of TestCrashSchedules")
	schedulesFlag = flag.Uint64("schedules", 3000, "run so many schedules of TestCrashSchedules")
)

// TestCrashSchedules lives a few machines through random faults at random
// arrows.
func TestCrashSchedules(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		err := schedule(*seedFlag)
		require.NoError(t, err)
		return
	}
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard + 1; seed <= *schedulesFlag; seed += shards {
				if err := schedule(seed); err != nil {
					t.Fatalf("schedule %d (again with -run TestCrashSchedules -seed=%d): %v", seed, seed, err)
				}
			}
		})
	}
}

// schedule runs one random schedule.
func schedule(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	o := drivertest.CloudOptions{
		Lag:                 time.Duration(rng.IntN(31)) * time.Second,
		BootTime:            time.Minute,
		ShutdownTime:        time.Duration(rng.IntN(2)*20) * time.Second,
		NeedsInitialization: rng.IntN(2) == 0,
	}
	p := machine.DefaultPolicy()
	if rng.IntN(4) == 0 {
		p = machine.Policy{}
	}
	// Faults come dense or sparse, and end.
	often, budget := []float64{0.05, 0.2, 0.5}[rng.IntN(3)], rng.IntN(15)
	if rng.IntN(8) == 0 {
		o.NodeName = func(machine string) string { return machine + strings.Repeat("n", 64) }
	}
	s := newSim(seed, o, p, func(int) blow {
		if budget <= 0 || rng.Float64() > often {
			return noBlow
		}
		budget--
		return blows[rng.IntN(len(blows))]
	})
	if rng.IntN(2) == 0 {
		s.deleteAt = s.clock.Now().Add(time.Duration(rng.Int64N(int64(4 * time.Minute))))
	}
	force := rng.IntN(4) == 0
	s.needsToken = rng.IntN(2) == 0
	s.volumes = volumes{detach: rng.IntN(3), stay: rng.IntN(2), after: time.Duration(rng.Int64N(int64(3 * time.Minute)))}
	for i := range 1 + rng.IntN(3) {
		m := newMachine(fmt.Sprint("m-", i))
		if force {
			m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: "true"}
		}
		s.create(m)
	}
	return s.run()
}

// lives are the plain lives, with everything that a cloud may ask for.
func lives() map[string]drivertest.CloudOptions {
	return map[string]drivertest.CloudOptions{
		"simple":        {BootTime: time.Minute},
		"late":          {BootTime: time.Minute, Lag: 30 * time.Second, ShutdownTime: 20 * time.Second},
		"uninitialised": {BootTime: time.Minute, NeedsInitialization: true},
		"long names": {BootTime: time.Minute, NodeName: func(machine string) string {
			return machine + strings.Repeat("n", 64)
		}},
		"all": {BootTime: time.Minute, NeedsInitialization: true, Lag: 30 * time.Second, ShutdownTime: 20 * time.Second},
	}
}

// life runs a machine to Running, and to its end three minutes after its creation.
func life(o drivertest.CloudOptions, at plan) (*sim, error) {
	s, _, err := lifeByClock(o, at, 0, 3*time.Minute, false)
	return s, err
}

// lifeByClock runs a machine to its end, which is asked for after a while, and returns
// how long it took. The clock of the API servers is ahead of the controller's.
func lifeByClock(o drivertest.CloudOptions, at plan, ahead, deleteAfter time.Duration, force bool) (*sim, time.Duration, error) {
	s := newSim(1, o, machine.DefaultPolicy(), at)
	s.ahead, s.needsToken = ahead, true
	s.volumes = volumes{detach: 1, stay: 1, after: 40 * time.Second}
	begin := s.clock.Now()
	s.deleteAt = begin.Add(deleteAfter)
	m := newMachine("m")
	if force {
		m.Labels = map[string]string{v1alpha1.LabelKeyForceDeletion: "true"}
	}
	s.create(m)
	err := s.run()
	return s, s.clock.Now().Sub(begin), err
}

// TestCrashAtEveryArrow lives one machine through every single fault at every
// arrow of its plain life, and through every fault after a deletion at every
// arrow.
func TestCrashAtEveryArrow(t *testing.T) {
	t.Parallel()
	for name, o := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := life(o, nil)
			require.NoError(t, err)
			require.Greater(t, plain.arrow, 15, "the life has that many steps")
			for i := range plain.arrow {
				for _, b := range blows {
					_, err := life(o, func(arrow int) blow {
						if arrow == i {
							return b
						}
						return noBlow
					})
					require.NoError(t, err, "arrow %d: %s", i, b)
				}
			}
		})
	}
}

// TestCrashAfterADeletionAtEveryArrow deletes the machine at every arrow of its
// plain life and has a fault at each of those that follow.
func TestCrashAfterADeletionAtEveryArrow(t *testing.T) {
	t.Parallel()
	for name, o := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := life(o, nil)
			require.NoError(t, err)
			for i := range plain.arrow {
				for j := i; j < i+10; j++ {
					for _, b := range blows {
						_, err := life(o, func(arrow int) blow {
							switch {
							case arrow == j && i != j:
								return b
							case arrow == i:
								return deleted
							}
							return noBlow
						})
						require.NoError(t, err, "deleted at arrow %d, %s at arrow %d", i, b, j)
					}
				}
			}
		})
	}
}
