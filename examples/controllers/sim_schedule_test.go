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
	seedFlag  = flag.Uint64("schedule.seed", 0, "run the schedule of this seed only, and log its history")
	countFlag = flag.Int("schedule.count", 0, "the number of schedules")
	firstFlag = flag.Uint64("schedule.first", 1, "the seed of the first schedule")
)

// scenario is a simulation without its faults.
type scenario struct {
	name          string
	machines      int
	noTarget      bool
	joins         bool
	ill           bool          // the Node of a running machine becomes unhealthy
	recovers      bool          // the Node recovers
	recoversAfter time.Duration // zero means 5m
	// deleteAfter and deleteRunning are when users delete the machines: after the begin, or after
	// they became Running. Zero means at the end.
	deleteAfter, deleteRunning time.Duration
	pods                       int
	volumes                    bool          // pods have volumes
	detach                     time.Duration // the detach time of unused volumes; zero means never
	latePod                    bool          // a pod is bound during the cordon of a Node
	deployment                 bool          // the machines have the label of a deployment
	unlabeled                  bool          // the template of the deployment has no label "name"
	guard                      safety.GuardPolicy
	preserve                   []preserveRequest
	preserveNode               bool        // the annotation is set on the Node
	rollout                    *rollout    // nil for machines without a deployment
	wrong                      *wrongClass // nil for a class that is right
	updates                    bool        // machines are updated in place
	updateAfter                time.Duration
	updateFails                bool // the first update fails
	foreignFinalizers          bool
	oldLists                   bool          // the first lists of a process may be old
	unended                    bool          // driver calls may not end
	clockAhead                 time.Duration // how far the clock of the controllers is ahead of the API servers
	cloud                      drivertest.CloudOptions
}

func (s scenario) String() string {
	return fmt.Sprintf("%s, rollout %v, %s, volumes %t detached after %s, of a deployment %t, preservation %v on the node %t, updates %t failing %t: %d machines, target %t, deleted after %s, or %s after running, %d pods, foreign finalizers %t, old lists %t, lag %s, boot %s, shutdown %s, initialized %t",
		s.name, s.rollout, s.wrong, s.volumes, s.detach, s.deployment, s.preserve, s.preserveNode, s.updates, s.updateFails, s.machines, !s.noTarget, s.deleteAfter, s.deleteRunning, s.pods, s.foreignFinalizers, s.oldLists, s.cloud.Lag, s.cloud.BootTime, s.cloud.ShutdownTime,
		s.cloud.NeedsInitialization)
}

// play runs a scenario to its end, and then deletes all machines.
func play(s scenario, rng *rand.Rand, at plan, verbose bool) *world {
	return newWorld(s, rng, at, verbose).playOn()
}

// playOn runs a new world to its end, and then deletes all machines.
func (w *world) playOn() *world {
	if w.run(); len(w.violations) == 0 {
		w.checkRest()
	}
	if w.scenario.rollout != nil && len(w.violations) == 0 {
		w.undeploy()
	} else {
		for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
			w.remove(m.Name)
		}
	}
	if len(w.violations) == 0 {
		w.run()
	}
	if len(w.violations) == 0 {
		w.checkRest()
		if left := len(w.control.now["machines"]); left > 0 {
			w.violate("at the end: %d machines", left)
		}
		w.checkUndeployed()
	}
	if w.process != nil {
		w.process.cancel()
	}
	return w
}

// scenarios are the lifecycles of machines.
var scenarios = []scenario{
	{name: "deleted while Running", joins: true},
	{name: "deleted at any time", joins: true, deleteAfter: time.Second},
	{name: "Node stays unhealthy", joins: true, ill: true},
	{name: "Node recovers", joins: true, ill: true, recovers: true},
	{name: "Node never joins"},
	{name: "no target cluster", noTarget: true},
	{name: "preserved"},
	{name: "updated in place", joins: true, updates: true},
}

// randomSchedule is a scenario with random faults.
func randomSchedule(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := scenarios[rng.IntN(len(scenarios))]
	if rng.IntN(3) == 0 {
		s = scenarios[rng.IntN(2)] // these have the most calls
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
	s.drawConditions(rng)
	s.foreignFinalizers = rng.IntN(3) == 0
	s.cloud = anyCloud(rng)
	return play(s, rng, randomFaults(rng), verbose)
}

// anyCloud returns random delays of the cloud.
func anyCloud(rng *rand.Rand) drivertest.CloudOptions {
	return drivertest.CloudOptions{
		BootTime:            []time.Duration{0, 20 * time.Second, 2 * time.Minute}[rng.IntN(3)],
		ShutdownTime:        []time.Duration{0, 0, 20 * time.Second}[rng.IntN(3)],
		Lag:                 []time.Duration{0, 0, 5 * time.Second, 20 * time.Second}[rng.IntN(4)],
		NeedsInitialization: rng.IntN(2) == 0,
	}
}

// randomFaults is a plan of random faults.
func randomFaults(rng *rand.Rand) plan {
	concurrentWrites := 0
	if rng.IntN(4) == 0 {
		concurrentWrites = 6
	}
	often, left := []float64{0.03, 0.1, 0.3}[rng.IntN(3)], 1+rng.IntN(8)
	return func(a simCall) fault {
		if concurrentWrites > 0 && a.write && rng.IntN(3) == 0 {
			concurrentWrites--
			return fault{kind: concurrentWrite}
		}
		if left == 0 || rng.Float64() >= often {
			return fault{}
		}
		left--
		return randomFault(a, rng)
	}
}

// drawConditions sets the pods, volumes, preservation and updates of a scenario at random.
func (s *scenario) drawConditions(rng *rand.Rand) {
	if s.pods > 0 && rng.IntN(2) == 0 {
		s.volumes, s.detach = true, []time.Duration{0, 7 * time.Second, 7 * time.Second, 3 * time.Minute}[rng.IntN(4)]
	}
	s.deployment, s.latePod = rng.IntN(2) == 0, rng.IntN(4) == 0
	switch {
	case s.name == "preserved":
		s.preserve, s.preserveNode = requests(rng), rng.IntN(2) == 0
		s.joins, s.ill, s.recovers = true, rng.IntN(4) > 0, rng.IntN(2) == 0
		s.recoversAfter = time.Duration(rng.Int64N(int64(20 * time.Minute)))
	case s.updates:
		s.updateAfter, s.updateFails = time.Duration(rng.Int64N(int64(30*time.Second))), rng.IntN(3) == 0
	}
}

// randomFault returns one of the possible faults of a call. For a driver call, half of them are
// errors of the driver.
func randomFault(a simCall, rng *rand.Rand) fault {
	from := a.possible()
	if a.site == nil && rng.IntN(2) == 0 {
		from = from[:len(commonFaults)-1]
	}
	t := from[rng.IntN(len(from))]
	if t.wait > 0 {
		t.wait = time.Duration(rng.Int64N(int64(time.Minute)))
		if t.kind == outage && rng.IntN(2) == 0 { // long enough for a freeze
			t.wait += 4 * time.Minute
		}
	}
	return t
}

// fewerCollections makes garbage collections rare, which is faster.
func fewerCollections(t *testing.T) {
	t.Helper()
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

// TestSchedules runs scenarios with faults in random orders of events. The seed determines all of
// it.
func TestSchedules(t *testing.T) {
	t.Parallel()
	playAll(t, "TestSchedules", 20000, randomSchedule)
}

// playAll runs the given number of schedules, or the one of the flag.
func playAll(t *testing.T, name string, count int, random func(seed uint64, verbose bool) *world) {
	t.Helper()
	if *seedFlag != 0 {
		synctest.Test(t, func(t *testing.T) {
			w := random(*seedFlag, true)
			t.Logf("%s\n%s", w.scenario, strings.Join(w.trace, "\n"))
			require.Empty(t, w.violations)
		})
		return
	}
	fewerCollections(t)
	const shards = 4
	if testing.Short() {
		count /= 20
	}
	if *countFlag > 0 {
		count = *countFlag
	}
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, faults, freezes := 0, 0, 0
				for i := shard; i < count; i += shards {
					seed := *firstFlag + uint64(i)
					w := random(seed, false)
					calls, faults, freezes = calls+w.calls, faults+w.fault, freezes+w.freezes
					if len(w.violations) > 0 {
						t.Errorf("%s\n%s\nrepeat with: go test ./controllers -run %s -schedule.seed=%d -v",
							w.scenario, strings.Join(w.violations, "\n"), name, seed)
						if t.Failed() && *countFlag == 0 {
							return
						}
					}
				}
				t.Logf("%d calls, %d faults, %d freezes", calls, faults, freezes)
				if count >= 20000 {
					require.Greater(t, freezes, 100)
				}
			})
		})
	}
}
