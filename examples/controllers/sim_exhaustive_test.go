// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// slowCloud takes its time for everything, and shows it late.
var slowCloud = drivertest.CloudOptions{
	BootTime: 20 * time.Second, ShutdownTime: 10 * time.Second, Lag: 5 * time.Second, NeedsInitialization: true,
}

// lifecycles are those in which everything is tried, in a fixed order of events.
var lifecycles = []scenario{
	{name: "it runs until it is deleted", machines: 1, joins: true, pods: 2, foreignFinalizers: true, deleteRunning: 30 * time.Second, cloud: slowCloud},
	{name: "it is deleted at once", machines: 1, joins: true, deleteAfter: time.Millisecond, cloud: slowCloud},
	{name: "it is deleted as it boots", machines: 1, joins: true, deleteAfter: 10 * time.Second, cloud: slowCloud},
	{name: "its node gets ill for good", machines: 1, joins: true, ill: true, pods: 1},
	{name: "its node gets ill and well again", machines: 1, joins: true, ill: true, recovers: true},
	{name: "it never joins", machines: 1, cloud: slowCloud},
	{name: "there is no cluster to join", machines: 1, noTarget: true, cloud: slowCloud},
	{name: "it detaches its volumes", machines: 1, joins: true, pods: 1, volumes: true, detach: 5 * time.Second, latePod: true, deleteRunning: 30 * time.Second},
	{name: "its volumes stay", machines: 1, joins: true, pods: 2, volumes: true, deleteRunning: 30 * time.Second},
	{name: "it is preserved", machines: 1, joins: true, ill: true, pods: 1, preserve: []request{{after: time.Minute, value: v1alpha1.PreserveMachineAnnotationValueNow}}},
	{name: "it is updated in place", machines: 1, joins: true, pods: 1, updates: true, updateAfter: 5 * time.Second, updateFails: true},
	{name: "its lists are old", machines: 1, joins: true, oldLists: true, deleteRunning: 30 * time.Second, cloud: drivertest.CloudOptions{Lag: 20 * time.Second}},
	{name: "there are two", machines: 2, joins: true, deleteRunning: time.Minute},
	{name: "it is rolled out", joins: true, deployment: true, rollout: &rollout{
		replicas: 1, surge: 1, strategy: v1alpha1.RollingUpdateMachineDeploymentStrategyType, changes: []change{{time.Minute, renewed(1)}},
	}},
}

// arrowsOf returns the calls of a life in which nothing more goes wrong than the
// plan says.
func arrowsOf(t *testing.T, s scenario, at plan) (arrows []arrow) {
	t.Helper()
	w := play(s, nil, func(a arrow) trouble {
		arrows = append(arrows, a)
		return at(a)
	}, false)
	require.NoError(t, w.result(), "%s: %v", s.name, at)
	return arrows
}

// calm is the plan of a life in which nothing goes wrong.
func calm(arrow) trouble { return trouble{} }

// check plays a life, and once more to tell of it if it went wrong.
func check(t *testing.T, s scenario, what string, at func() plan) {
	t.Helper()
	if w := play(s, nil, at(), false); len(w.wrongs) > 0 {
		w = play(s, nil, at(), true)
		t.Errorf("%s: %s\n%s", s.name, what, strings.Join(append(w.wrongs, w.trace...), "\n"))
	}
}

// Everything that can go wrong goes wrong once, at every call of every life.
func TestExhaustive_OneFailureAtEveryCall(t *testing.T) {
	t.Parallel()
	fewerCollections(t)
	for _, s := range lifecycles {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				arrows, played := arrowsOf(t, s, calm), 0
				for i, a := range arrows {
					for n, trouble := range a.possible() {
						if (testing.Short() || raced) && (i+n)%10 > 0 {
							continue
						}
						played++
						check(t, s, fmt.Sprintf("%s at call %s", trouble, a), func() plan { return once(i, trouble) })
						if t.Failed() {
							return
						}
					}
				}
				t.Logf("%d calls, %d troubles", len(arrows), played)
			})
		})
	}
}

// once is the plan of one trouble at one arrow.
func once(at int, t trouble) plan {
	return func(a arrow) trouble {
		if a.n == at {
			return t
		}
		return trouble{}
	}
}

// endings are the ways in which a call ends badly: with the end of the process,
// without its effect, and with it but without its answer. To them comes what
// makes the life another one: that the machine is deleted just then, and that
// time passes.
func (a arrow) endings() []trouble {
	out := []trouble{{what: crashAfter, wait: time.Second}, {what: deleted}}
	switch {
	case a.site == nil:
		return append(out, trouble{what: driverFails, code: codes.Unavailable}, trouble{what: driverLoses, code: codes.DeadlineExceeded}, trouble{what: slowAfter})
	case a.verb == "update" || a.verb == "patch":
		return append(out, trouble{what: conflict}, trouble{what: cut})
	case a.write:
		return append(out, trouble{what: refused}, trouble{what: cut})
	default:
		return append(out, trouble{what: refused})
	}
}

// pairLifecycle is the life of the pairs: all that a machine goes through, and
// nothing twice.
var pairLifecycle = scenario{name: "all there is", machines: 1, joins: true, pods: 1, deleteRunning: 30 * time.Second, cloud: drivertest.CloudOptions{
	BootTime: 10 * time.Second, Lag: 20 * time.Second, NeedsInitialization: true,
}}

// Any two calls of a life end badly, in any of the ways. The second is any call
// after the first, of the life as it goes on then.
func TestExhaustive_TwoFailuresAtEveryPairOfCalls(t *testing.T) {
	t.Parallel()
	fewerCollections(t)
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				played := 0
				for i, first := range arrowsOf(t, pairLifecycle, calm) {
					if i%shards != shard || (testing.Short() || raced) && i%8 > 0 {
						continue
					}
					for _, one := range first.endings() {
						played += checkPairs(t, first, one)
						if t.Failed() {
							return
						}
					}
				}
				t.Logf("%d pairs", played)
			})
		})
	}
}

// checkPairs plays the life with one trouble, and each that may come after it.
func checkPairs(t *testing.T, first arrow, one trouble) (played int) {
	t.Helper()
	for j, second := range arrowsOf(t, pairLifecycle, once(first.n, one)) {
		if j <= first.n {
			continue
		}
		for _, two := range second.endings() {
			played++
			check(t, pairLifecycle, fmt.Sprintf("%s at call %s, and %s at call %s", one, first, two, second), func() plan {
				return func(a arrow) trouble {
					if a.n == first.n {
						return one
					}
					return once(j, two)(a)
				}
			})
			if t.Failed() {
				return played
			}
		}
	}
	return played
}

// A seed is a history, to the last word. The bubble ends only if no goroutine is left.
func TestSimulation_SameSeed_SameHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			require.Equal(t, told(randomSchedule, seed), told(randomSchedule, seed), "seed %d", seed)
			require.Equal(t, told(randomRollout, seed), told(randomRollout, seed), "seed %d of a rollout", seed)
		}
	})
}

// told is the history of a seed, without the random names of tokens, and without
// which of several machines is named as the one that needs a class.
func told(play func(seed uint64, verbose bool) *world, seed uint64) string {
	text := strings.Join(play(seed, true).trace, "\n")
	return regexp.MustCompile(`bootstrap-token-[a-z0-9]{6}|Referenced: machine/[a-z0-9-]+`).ReplaceAllString(text, "…")
}
