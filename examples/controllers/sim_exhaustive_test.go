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

// slowCloud has long operations and shows changes late.
var slowCloud = drivertest.CloudOptions{
	BootTime: 20 * time.Second, ShutdownTime: 10 * time.Second, Lag: 5 * time.Second, NeedsInitialization: true,
}

// lifecycles are the scenarios of the exhaustive tests. Their order of events is fixed.
var lifecycles = []scenario{
	{name: "deleted while Running", machines: 1, joins: true, pods: 2, foreignFinalizers: true, deleteRunning: 30 * time.Second, cloud: slowCloud},
	{name: "deleted at once", machines: 1, joins: true, deleteAfter: time.Millisecond, cloud: slowCloud},
	{name: "deleted while booting", machines: 1, joins: true, deleteAfter: 10 * time.Second, cloud: slowCloud},
	{name: "Node stays unhealthy", machines: 1, joins: true, ill: true, pods: 1},
	{name: "Node recovers", machines: 1, joins: true, ill: true, recovers: true},
	{name: "Node never joins", machines: 1, cloud: slowCloud},
	{name: "no target cluster", machines: 1, noTarget: true, cloud: slowCloud},
	{name: "volumes are detached", machines: 1, joins: true, pods: 1, volumes: true, detach: 5 * time.Second, latePod: true, deleteRunning: 30 * time.Second},
	{name: "volumes stay attached", machines: 1, joins: true, pods: 2, volumes: true, deleteRunning: 30 * time.Second},
	{name: "preserved", machines: 1, joins: true, ill: true, pods: 1, preserve: []preserveRequest{{after: time.Minute, value: v1alpha1.PreserveMachineAnnotationValueNow}}},
	{name: "updated in place", machines: 1, joins: true, pods: 1, updates: true, updateAfter: 5 * time.Second, updateFails: true},
	{name: "old lists", machines: 1, joins: true, oldLists: true, deleteRunning: 30 * time.Second, cloud: drivertest.CloudOptions{Lag: 20 * time.Second}},
	{name: "two machines", machines: 2, joins: true, deleteRunning: time.Minute},
	{name: "rollout", joins: true, deployment: true, rollout: rolling(1, 1, 0, change{time.Minute, renewed(1)})},
}

// callsOf returns the calls of a scenario with the faults of a plan.
func callsOf(t *testing.T, s scenario, at plan) (calls []simCall) {
	t.Helper()
	w := play(s, nil, func(a simCall) fault {
		calls = append(calls, a)
		return at(a)
	}, false)
	require.NoError(t, w.result(), "%s: %v", s.name, at)
	return calls
}

// noFaults is the plan without faults.
func noFaults(simCall) fault { return fault{} }

// check runs a scenario. If it fails, check repeats it to log its history.
func check(t *testing.T, s scenario, what string, at func() plan) {
	t.Helper()
	if w := play(s, nil, at(), false); len(w.violations) > 0 {
		w = play(s, nil, at(), true)
		t.Errorf("%s: %s\n%s", s.name, what, strings.Join(append(w.violations, w.trace...), "\n"))
	}
}

// TestExhaustive_OneFailureAtEveryCall injects each possible fault once, at every call of every
// scenario.
func TestExhaustive_OneFailureAtEveryCall(t *testing.T) {
	t.Parallel()
	fewerCollections(t)
	for _, s := range lifecycles {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, played := callsOf(t, s, noFaults), 0
				for i, a := range calls {
					for n, fault := range a.possible() {
						if testing.Short() && (i+n)%10 > 0 {
							continue
						}
						played++
						check(t, s, fmt.Sprintf("%s at call %s", fault, a), func() plan { return once(i, fault) })
						if t.Failed() {
							return
						}
					}
				}
				t.Logf("%d calls, %d faults", len(calls), played)
			})
		})
	}
}

// once is the plan of one fault at one call.
func once(at int, t fault) plan {
	return func(a simCall) fault {
		if a.n == at {
			return t
		}
		return fault{}
	}
}

// endings are the faults of the pair test: a crash, a call without effect, and a call whose
// response is lost. There are two more: a user deletes the machine, and time passes.
func (a simCall) endings() []fault {
	out := []fault{{kind: crashAfter, wait: time.Second}, {kind: deleted}}
	switch {
	case a.site == nil:
		return append(out, fault{kind: driverFails, code: codes.Unavailable}, fault{kind: driverLoses, code: codes.DeadlineExceeded}, fault{kind: slowAfter})
	case a.verb == "update" || a.verb == "patch":
		return append(out, fault{kind: conflict}, fault{kind: cut})
	case a.write:
		return append(out, fault{kind: refused}, fault{kind: cut})
	default:
		return append(out, fault{kind: refused})
	}
}

// pairLifecycle is the scenario of the pair test: the whole lifecycle of one machine.
var pairLifecycle = scenario{name: "whole lifecycle", machines: 1, joins: true, pods: 1, deleteRunning: 30 * time.Second, cloud: drivertest.CloudOptions{
	BootTime: 10 * time.Second, Lag: 20 * time.Second, NeedsInitialization: true,
}}

// TestExhaustive_TwoFailuresAtEveryPairOfCalls injects two faults, at every pair of calls. The
// second call is one of those that follow the first fault.
func TestExhaustive_TwoFailuresAtEveryPairOfCalls(t *testing.T) {
	t.Parallel()
	fewerCollections(t)
	const shards = 4
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				played := 0
				for i, first := range callsOf(t, pairLifecycle, noFaults) {
					if i%shards != shard || testing.Short() && i%8 > 0 {
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

// checkPairs runs the scenario with one fault and each possible second one.
func checkPairs(t *testing.T, first simCall, one fault) (played int) {
	t.Helper()
	for j, second := range callsOf(t, pairLifecycle, once(first.n, one)) {
		if j <= first.n {
			continue
		}
		for _, two := range second.endings() {
			played++
			check(t, pairLifecycle, fmt.Sprintf("%s at call %s, and %s at call %s", one, first, two, second), func() plan {
				return func(a simCall) fault {
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

// TestSimulation_SameSeed_SameHistory compares the whole history. The bubble ends only if no
// goroutine is left.
func TestSimulation_SameSeed_SameHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			require.Equal(t, historyOf(randomSchedule, seed), historyOf(randomSchedule, seed), "seed %d", seed)
			require.Equal(t, historyOf(randomRollout, seed), historyOf(randomRollout, seed), "seed %d of a rollout", seed)
		}
	})
}

// historyOf returns the history of a seed, without the random names of tokens and machines.
func historyOf(play func(seed uint64, verbose bool) *world, seed uint64) string {
	text := strings.Join(play(seed, true).trace, "\n")
	return regexp.MustCompile(`bootstrap-token-[a-z0-9]{6}|Referenced: machine/[a-z0-9-]+`).ReplaceAllString(text, "…")
}
