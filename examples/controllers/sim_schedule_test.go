// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

var (
	seedFlag  = flag.Uint64("schedule.seed", 0, "play the one schedule of this seed, and tell what happens")
	countFlag = flag.Int("schedule.count", 0, "play so many schedules")
	firstFlag = flag.Uint64("schedule.first", 1, "the seed of the first schedule")
)

// scenario is what happens beside the troubles.
type scenario struct {
	name          string
	machines      int
	noTarget      bool
	joins         bool
	ill           bool          // the Node of a machine that runs gets ill
	recovers      bool          // and well again
	recoversAfter time.Duration // zero is five minutes
	// deleteAfter and deleteRunning are when users delete the machines: after so
	// long, or so long after they ran. Zero is never: then they are deleted when
	// all else is over.
	deleteAfter, deleteRunning time.Duration
	pods                       int
	volumes                    bool          // of the pods
	detach                     time.Duration // after which volumes are detached that no pod needs; zero is never
	latePod                    bool          // is bound as a Node is cordoned
	deployment                 bool          // the machines are of one
	unlabelled                 bool          // the template of the deployment has no label "name"
	guard                      safety.GuardPolicy
	preserve                   []request
	preserveNode               bool     // the Node is told, and not the machine
	rollout                    *rollout // nil for machines without a deployment
	updates                    bool     // in place, after it runs
	updateAfter                time.Duration
	updateFails                bool // at first
	foreignFinalizers          bool
	oldLists                   bool          // the first lists of a process may be old
	clockAhead                 time.Duration // of the controllers' clock, of that of the API servers
	cloud                      drivertest.CloudOptions
}

func (s scenario) String() string {
	return fmt.Sprintf("%s, rollout %v, volumes %t detached after %s, of a deployment %t, preservation %v on the node %t, updates %t failing %t: %d machines, target %t, deleted after %s, or %s after running, %d pods, others' finalizers %t, old lists %t, lag %s, boot %s, shutdown %s, initialised %t",
		s.name, s.rollout, s.volumes, s.detach, s.deployment, s.preserve, s.preserveNode, s.updates, s.updateFails, s.machines, !s.noTarget, s.deleteAfter, s.deleteRunning, s.pods, s.foreignFinalizers, s.oldLists, s.cloud.Lag, s.cloud.BootTime, s.cloud.ShutdownTime,
		s.cloud.NeedsInitialization)
}

// play lets a scenario happen to its end, and then all machines be deleted.
func play(s scenario, rng *rand.Rand, at plan, verbose bool) *world {
	w := newWorld(s, rng, at, verbose)
	if w.run(); len(w.wrongs) == 0 {
		w.checkRest()
	}
	if w.scenario.rollout != nil && len(w.wrongs) == 0 {
		w.undeploy()
	} else {
		for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
			w.remove(m.Name)
		}
	}
	if len(w.wrongs) == 0 {
		w.run()
	}
	if len(w.wrongs) == 0 {
		w.checkRest()
		if left := len(w.control.now["machines"]); left > 0 {
			w.wrong("at the end there are %d machines", left)
		}
		w.checkUndeployed()
	}
	if w.process != nil {
		w.process.cancel()
	}
	return w
}

// scenarios are the lives of machines.
var scenarios = []scenario{
	{name: "it runs until it is deleted", joins: true},
	{name: "it is deleted at some time", joins: true, deleteAfter: time.Second},
	{name: "its node gets ill for good", joins: true, ill: true},
	{name: "its node gets ill and well again", joins: true, ill: true, recovers: true},
	{name: "it never joins"},
	{name: "there is no cluster to join", noTarget: true},
	{name: "it is preserved"},
	{name: "it is updated in place", joins: true, updates: true},
}

// randomSchedule is a scenario with random troubles.
func randomSchedule(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := scenarios[rng.IntN(len(scenarios))]
	if rng.IntN(3) == 0 {
		s = scenarios[rng.IntN(2)] // most happens there
	}
	s.oldLists = rng.IntN(4) == 0
	s.machines = 1 + max(0, rng.IntN(10)-7)
	if s.deleteAfter > 0 {
		s.deleteAfter = time.Duration(rng.Int64N(int64([]time.Duration{100 * time.Millisecond, time.Minute, 10 * time.Minute}[rng.IntN(3)])))
	}
	if rng.IntN(2) == 0 {
		s.deleteRunning = time.Duration(rng.Int64N(int64(3 * time.Minute)))
	}
	s.pods = max(0, rng.IntN(6)-3)
	s.befallen(rng)
	s.foreignFinalizers = rng.IntN(3) == 0
	s.cloud = anyCloud(rng)
	return play(s, rng, anyTroubles(rng), verbose)
}

// anyCloud draws how fast a cloud is.
func anyCloud(rng *rand.Rand) drivertest.CloudOptions {
	return drivertest.CloudOptions{
		BootTime:            []time.Duration{0, 20 * time.Second, 2 * time.Minute}[rng.IntN(3)],
		ShutdownTime:        []time.Duration{0, 0, 20 * time.Second}[rng.IntN(3)],
		Lag:                 []time.Duration{0, 0, 5 * time.Second, 20 * time.Second}[rng.IntN(4)],
		NeedsInitialization: rng.IntN(2) == 0,
	}
}

// anyTroubles draws what goes wrong.
func anyTroubles(rng *rand.Rand) plan {
	meddling := 0
	if rng.IntN(4) == 0 {
		meddling = 6
	}
	often, left := []float64{0.03, 0.1, 0.3}[rng.IntN(3)], 1+rng.IntN(8)
	return func(a arrow) trouble {
		if meddling > 0 && a.write && rng.IntN(3) == 0 {
			meddling--
			return trouble{what: meddled}
		}
		if left == 0 || rng.Float64() >= often {
			return trouble{}
		}
		left--
		return drawn(a, rng)
	}
}

// befallen draws what befalls the machines beside their lives.
func (s *scenario) befallen(rng *rand.Rand) {
	if s.pods > 0 && rng.IntN(2) == 0 {
		s.volumes, s.detach = true, []time.Duration{0, 7 * time.Second, 7 * time.Second, 3 * time.Minute}[rng.IntN(4)]
	}
	s.deployment, s.latePod = rng.IntN(2) == 0, rng.IntN(4) == 0
	switch {
	case s.name == "it is preserved":
		s.preserve, s.preserveNode = requests(rng), rng.IntN(2) == 0
		s.joins, s.ill, s.recovers = true, rng.IntN(4) > 0, rng.IntN(2) == 0
		s.recoversAfter = time.Duration(rng.Int64N(int64(20 * time.Minute)))
	case s.updates:
		s.updateAfter, s.updateFails = time.Duration(rng.Int64N(int64(30*time.Second))), rng.IntN(3) == 0
	}
}

// drawn is one of all that can go wrong at an arrow: for a call of the driver,
// as often one of its errors as something else.
func drawn(a arrow, rng *rand.Rand) trouble {
	from := a.possible()
	if a.site == nil && rng.IntN(2) == 0 {
		from = from[:len(anywhere)-1]
	}
	t := from[rng.IntN(len(from))]
	if t.wait > 0 {
		t.wait = time.Duration(rng.Int64N(int64(time.Minute)))
		if t.what == outage && rng.IntN(2) == 0 { // long enough for a freeze
			t.wait += 4 * time.Minute
		}
	}
	return t
}

// fewerCollections lets the garbage of worlds pile up: it is faster.
func fewerCollections(t *testing.T) {
	t.Helper()
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

// A schedule is a scenario, with troubles, in some order of events; all of it is
// drawn from its seed.
func TestSchedules(t *testing.T) {
	t.Parallel()
	playAll(t, "TestSchedules", 20000, randomSchedule)
}

// playAll plays so many schedules, or, if a flag says so, one.
func playAll(t *testing.T, name string, count int, random func(seed uint64, verbose bool) *world) {
	t.Helper()
	if *seedFlag != 0 {
		synctest.Test(t, func(t *testing.T) {
			w := random(*seedFlag, true)
			t.Logf("%s\n%s", w.scenario, strings.Join(w.trace, "\n"))
			require.Empty(t, w.wrongs)
		})
		return
	}
	fewerCollections(t)
	const shards = 4
	if testing.Short() || raced {
		count /= 20
	}
	if *countFlag > 0 {
		count = *countFlag
	}
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				arrows, troubles, freezes := 0, 0, 0
				for i := shard; i < count; i += shards {
					seed := *firstFlag + uint64(i)
					w := random(seed, false)
					arrows, troubles, freezes = arrows+w.arrows, troubles+w.trouble, freezes+w.freezes
					if len(w.wrongs) > 0 {
						t.Errorf("%s\n%s\nplay it again: go test ./controllers -run %s -schedule.seed=%d -v",
							w.scenario, strings.Join(w.wrongs, "\n"), name, seed)
						if t.Failed() && *countFlag == 0 {
							return
						}
					}
				}
				t.Logf("%d calls, %d troubles, %d freezes", arrows, troubles, freezes)
				if count >= 20000 {
					require.Greater(t, freezes, 100)
				}
			})
		})
	}
}
